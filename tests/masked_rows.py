"""Rows to mask, and checks of their masks, for masking on arrays and in the graph."""

import collections
import itertools
import random

import classic
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from nezha_tf.corpus.packing import PackedRows
from nezha_tf.objectives.array_masking import Masked
from nezha_tf.objectives.policies import POLICIES, MaskingPolicy

# A correct program exceeds these for one of 100,000 seeds; the seeds are fixed.
HIGHEST_CHI_SQUARE = {2: 23.0, 7: 36.0, 9: 39.3}
# (policy, sizes of the words of each segment, budget).
EXACT_CASES = [
    (POLICIES["whole_word"], [[1, 2, 3], [2, 1]], 4),
    (POLICIES["token"], [[1, 2, 1]], 2),
    (MaskingPolicy(run_shares=(0.5, 0.25, 0.25)), [[1, 2, 1], [1]], 3),
]


def chi_square(counts, shares):
    """Returns Pearson's chi-square statistic of counts for the expected shares."""
    expected = np.array(shares) / np.sum(shares) * np.sum(counts)
    return (np.square(np.array(counts) - expected) / expected).sum()


def fits(counts, shares):
    return chi_square(counts, shares) < HIGHEST_CHI_SQUARE[len(counts) - 1]


def make_rows(texts, vocabulary, length, begins):
    """Returns the rows of texts (lists of segments, lists of ids); `begins` has their form."""
    arrays = [np.zeros((len(texts), length), kind) for kind in (np.int32, np.int32, bool, bool)]
    lengths = np.zeros(len(texts), np.int64)
    for row, (segments, starts) in enumerate(zip(texts, begins, strict=True)):
        ids, is_text, word_starts = [vocabulary.cls_id], [False], [False]
        for segment, segment_starts in zip(segments, starts, strict=True):
            ids += [*segment, vocabulary.sep_id]
            is_text += [True] * len(segment) + [False]
            word_starts += [True, *segment_starts[1:], False]
        lengths[row] = len(ids)
        for array, values in zip(arrays, (ids, [], is_text, word_starts), strict=True):
            array[row, : len(values)] = values
    text_ids = (np.arange(length) < lengths[:, None]).astype(np.int32)
    return PackedRows(*arrays, lengths, text_ids)


def random_rows(vocabulary, count, seed=0, length=64, words=0.5):
    """Returns random rows of 1 to 3 segments with distinct ids and words of several tokens."""
    rng = random.Random(seed)
    texts, begins = [], []
    for _ in range(count):
        sizes = [rng.randint(1, 20) for _ in range(rng.randint(1, 3))]
        ids = iter(rng.sample(range(200, len(vocabulary)), sum(sizes)))
        texts.append([list(itertools.islice(ids, size)) for size in sizes])
        begins.append([[rng.random() < words for _ in range(size)] for size in sizes])
    return make_rows(texts, vocabulary, length, begins)


@st.composite
def any_texts(draw, length):
    """Draws (texts, begins) for `make_rows` with a length: rows may be full, and words of any size.

    Their tokens are any except [CLS] and [SEP], also [PAD], [UNK] and [MASK].
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    words = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    texts, begins = [], []
    for _ in range(draw(st.integers(1, 6))):
        room, sizes = length - 1, []  # without [CLS]
        for _ in range(rng.integers(1, 4)):
            if room > 1:
                sizes.append(int(rng.integers(1, room)))
                room -= sizes[-1] + 1
        texts.append([rng.choice([0, 100, *range(103, 9000)], size).tolist() for size in sizes])
        begins.append([(rng.random(size) < words).tolist() for size in sizes])
    return texts, begins


def any_policies():
    """Returns a strategy for policies: those of the program, and random ones."""
    shares = st.lists(st.floats(0.01, 1), min_size=1, max_size=5).map(tuple)
    others = st.builds(MaskingPolicy, st.booleans(), shares, st.booleans())
    return st.sampled_from(list(POLICIES.values())) | others


def any_shares():
    """Returns a strategy for shares of predicted tokens; half of them are common values."""
    return st.sampled_from([0.15, 0.4, 1.0]) | st.floats(0, 1)


def assert_rows_are_masked(rows, masked, policy, share, most):
    """Asserts what is true for masked rows with any draws.

    Args:
      rows: the `PackedRows`.
      masked: the `Masked`.
      policy: the `MaskingPolicy`.
      share, most: the share of predicted tokens in a row, and the most predictions.
    """
    for number, length in enumerate(rows.lengths.tolist()):
        budget = min(most, max(1, round(length * share)))
        weights = masked.weights[number].tolist()
        count = weights.count(1.0)
        assert count <= budget and weights == [1.0] * count + [0.0] * (most - count)
        places = masked.positions[number].tolist()
        assert not any(places[count:]) and not masked.labels[number, count:].any()
        places = places[:count]
        assert places == sorted(set(places)) and rows.is_text[number, places].all()
        restored = masked.ids[number].copy()
        restored[places] = masked.labels[number, :count]
        assert (restored == rows.ids[number]).all()
        begins = rows.word_starts[number] | (not policy.of_words)
        for unit in classic.units_of(rows.is_text[number], begins):
            is_chosen = set(unit) <= set(places)
            assert is_chosen or set(unit).isdisjoint(places)
            # If runs are single units, no unit that fits into the budget is left over.
            assert is_chosen or len(policy.run_shares) > 1 or len(unit) > budget - count


def batch_of(rows):
    """Returns the rows as a batch of the reader."""
    values = {
        "input_ids": rows.ids,
        "input_mask": np.arange(rows.ids.shape[1]) < rows.lengths[:, None],
        "segment_ids": rows.segment_ids,
        "word_starts": rows.word_starts,
        "next_sentence_labels": np.zeros((len(rows.ids), 1)),
    }
    return {name: tf.constant(value.astype(np.int32)) for name, value in values.items()}


def as_masked(batch):
    """Returns a batch that the reader has masked as a `Masked`."""
    names = ("input_ids", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    return Masked(*(batch[name].numpy() for name in names))


def keys_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def exact_choices(units, run_shares, budget):
    """Returns a dict of each possible tuple of chosen places to its probability.

    It counts all orders of the anchors and all lengths of their runs.
    """
    expected = collections.Counter()
    for order in itertools.permutations(range(len(units))):
        for runs in itertools.product(range(1, len(run_shares) + 1), repeat=len(units)):
            chosen = classic.chosen_runs(units, order, runs, budget).values()
            share = np.prod([run_shares[run - 1] for run in runs])
            expected[tuple(sorted(itertools.chain(*chosen)))] += share
    return expected


def exact_case(vocabulary, policy, sizes, budget, length):
    """Returns (60,000 equal rows, the share of predictions, `exact_choices`) of an exact case."""
    segments = [list(range(300, 300 + sum(words))) for words in sizes]
    begins = [[at == 0 for size in words for at in range(size)] for words in sizes]
    rows = make_rows([segments], vocabulary, length, [begins])
    units = classic.units_of(rows.is_text[0], rows.word_starts[0] | (not policy.of_words))
    expected = exact_choices(units, policy.run_shares, budget)
    share = budget / rows.lengths[0]
    return PackedRows(*(np.repeat(array, 60_000, axis=0) for array in rows)), share, expected


def assert_chosen_as_expected(positions, expected):
    """Asserts that rows of predicted places, [B, P], have the distribution of `exact_choices`."""
    sets, counts = np.unique(positions, axis=0, return_counts=True)
    found = {
        tuple(place for place in places if place): number
        for places, number in zip(sets.tolist(), counts.tolist(), strict=True)
    }
    assert set(found) <= set(expected)
    statistic = chi_square([found.get(s, 0) for s in expected], list(expected.values()))
    freedom = len(expected) - 1
    assert statistic < freedom + 5 * (2 * freedom) ** 0.5
