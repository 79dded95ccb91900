"""Rows to mask, and what is expected of the masks: for masking on arrays and in the graph."""

import collections
import itertools
import random

import classic
import numpy as np

from nezha_tf.data.masking_policies import POLICIES, MaskingPolicy
from nezha_tf.pretraining_data.layout import Rows

# A right program exceeds these in one seed of a hundred thousand; the seeds are fixed.
HIGHEST_CHI_SQUARE = {2: 23.0, 7: 36.0, 9: 39.3}
# (policy, sizes of the words of each segment, budget).
EXACT_CASES = [
    (POLICIES["whole_word"], [[1, 2, 3], [2, 1]], 4),
    (POLICIES["token"], [[1, 2, 1]], 2),
    (MaskingPolicy(run_shares=(0.5, 0.25, 0.25)), [[1, 2, 1], [1]], 3),
]


def chi_square(counts, shares):
    """Returns Pearson's statistic of counts where these shares are expected."""
    expected = np.array(shares) / np.sum(shares) * np.sum(counts)
    return (np.square(np.array(counts) - expected) / expected).sum()


def fits(counts, shares):
    return chi_square(counts, shares) < HIGHEST_CHI_SQUARE[len(counts) - 1]


def make_rows(texts, vocabulary, length, begins):
    """Returns `Rows` of texts, each a list of segments, lists of ids; `begins` like the texts."""
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
    return Rows(*arrays, lengths)


def random_rows(vocabulary, count, seed=0, length=64, words=0.5):
    """Rows of one to three segments with distinct ids, and words of several pieces."""
    rng = random.Random(seed)
    texts, begins = [], []
    for _ in range(count):
        sizes = [rng.randint(1, 20) for _ in range(rng.randint(1, 3))]
        ids = iter(rng.sample(range(200, len(vocabulary)), sum(sizes)))
        texts.append([list(itertools.islice(ids, size)) for size in sizes])
        begins.append([[rng.random() < words for _ in range(size)] for size in sizes])
    return make_rows(texts, vocabulary, length, begins)


def keys_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def exact_choices(units, run_shares, budget):
    """Returns dict of the places that may be chosen, a tuple, to their share of probability.

    All orders of the anchors and all runs are counted out.
    """
    expected = collections.Counter()
    for order in itertools.permutations(range(len(units))):
        for runs in itertools.product(range(1, len(run_shares) + 1), repeat=len(units)):
            chosen = classic.chosen_runs(units, order, runs, budget).values()
            share = np.prod([run_shares[run - 1] for run in runs])
            expected[tuple(sorted(itertools.chain(*chosen)))] += share
    return expected


def assert_chosen_as_expected(positions, expected):
    """Asserts that rows of predicted places, [B, P], are as likely as `exact_choices` has it."""
    sets, counts = np.unique(positions, axis=0, return_counts=True)
    found = {
        tuple(place for place in places if place): number
        for places, number in zip(sets.tolist(), counts.tolist(), strict=True)
    }
    assert set(found) <= set(expected)
    statistic = chi_square([found.get(s, 0) for s in expected], list(expected.values()))
    freedom = len(expected) - 1
    assert statistic < freedom + 5 * (2 * freedom) ** 0.5
