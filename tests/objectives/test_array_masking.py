"""Masking on arrays: against a simple loop, the policies' shares, and exact probabilities."""

import collections

import classic
import numpy as np
import pytest
from masked_rows import (
    EXACT_CASES,
    assert_chosen_as_expected,
    exact_choices,
    fits,
    keys_of,
    make_rows,
    random_rows,
)

from nezha_tf.corpus.packing import PackedRows
from nezha_tf.objectives.array_masking import ArrayMasking, Units, choose
from nezha_tf.objectives.policies import POLICIES, budgets


def make(vocabulary, name, share=0.15, most=20, length=64):
    policy = POLICIES[name] if isinstance(name, str) else name
    return ArrayMasking(vocabulary, policy, length, share, most)


@pytest.mark.parametrize("longest_run", [1, 4])
def test_choice_is_that_of_the_classic_loop(vocabulary, longest_run):
    """The same anchors in the same order with the same runs give the same tokens."""
    rows = random_rows(vocabulary, 400)
    units = Units.of(rows, of_words=True)
    rng = np.random.default_rng(1)
    order = np.zeros(units.starts.shape, np.int64)
    for row, count in enumerate(units.counts):
        order[row, :count] = rng.permutation(count)
    sizes = np.minimum(rng.integers(1, longest_run + 1, order.shape), units.left)
    budget = rng.integers(1, 25, len(order))
    found = choose(units, order, np.maximum(sizes, 1), budget)
    for row, count in enumerate(units.counts):
        places = classic.units_of(rows.is_text[row], rows.word_starts[row])
        assert len(places) == count
        for unit, start, end in zip(places, units.starts[row], units.ends[row], strict=False):
            assert unit == list(range(start, end))
        runs = classic.chosen_runs(places, order[row, :count], sizes[row], budget[row])
        chosen = {
            anchor: [
                place for unit in np.flatnonzero(found[row] == anchor) for place in places[unit]
            ]
            for anchor in set(found[row].tolist()) - {-1}
        }
        assert chosen == runs


@pytest.mark.parametrize("name", POLICIES)
def test_masked_rows_are_whole(vocabulary, name):
    rows = random_rows(vocabulary, 1500, seed=2)
    masked = make(vocabulary, name, share=0.2, most=9)(rows, keys_of(1500))
    limits = [min(9, max(1, round(0.2 * length))) for length in rows.lengths]
    used = masked.weights.sum(axis=1).astype(int)
    assert (used <= limits).all()
    assert used.sum() / sum(limits) > (0.999 if name == "token" else 0.8)
    for row in range(1500):
        places = masked.positions[row, : used[row]].tolist()
        assert places == sorted(set(places)) and all(rows.is_text[row, places])
        assert masked.labels[row, : used[row]].tolist() == rows.ids[row, places].tolist()
        for slots in (masked.positions, masked.labels, masked.weights):
            assert not slots[row, used[row] :].any()
        others = np.delete(np.arange(64), places)
        assert (masked.ids[row, others] == rows.ids[row, others]).all()
        if POLICIES[name].of_words:
            for unit in classic.units_of(rows.is_text[row], rows.word_starts[row]):
                assert set(unit) <= set(places) or set(unit).isdisjoint(places)


@pytest.mark.parametrize("name", ["whole_word", "token", "ngram"])
def test_shares_of_what_stands_in_the_place(vocabulary, name):
    """Over 100,000 predicted tokens."""
    rows = random_rows(vocabulary, 20_000, seed=3, words=0.8)
    masked = make(vocabulary, name, share=0.3)(rows, keys_of(20_000, 3))
    row, slot = masked.weights.nonzero()
    labels, found = masked.labels[row, slot], masked.ids[row, masked.positions[row, slot]]
    is_mask, is_kept = found == vocabulary.mask_id, found == labels
    assert len(found) > 100_000
    counts = [is_mask.sum(), is_kept.sum(), (~is_mask & ~is_kept).sum()]
    assert fits(counts, [0.8, 0.1, 0.1])
    # Random tokens are uniform over the vocabulary; the few that equal their label count as "kept".
    random_ids = found[~is_mask & ~is_kept]
    assert fits(np.histogram(random_ids, 8, (0, len(vocabulary)))[0], [1] * 8)


@pytest.mark.parametrize("name", ["ngram", "span"])
def test_runs_have_the_lengths_of_the_papers(vocabulary, name):
    rows = random_rows(vocabulary, 9000, seed=4, words=1.0)
    units = Units.of(rows, of_words=True)
    _, sizes = make(vocabulary, name).anchors(units, keys_of(9000, 4))
    inside = units.numbers < units.counts[:, None]
    longest = len(POLICIES[name].run_shares)
    drawn = sizes[inside & (units.left >= longest)]
    shares = [0.8, 0.1, 0.1] if name == "ngram" else [0.2 * 0.8**k for k in range(10)]
    assert len(drawn) > 50_000
    assert fits(np.bincount(drawn, minlength=longest + 1)[1:], shares)
    assert (sizes <= units.left)[inside].all()


def test_a_span_is_masked_replaced_or_kept_as_a_whole(vocabulary):
    """The budget allows only one word, so all masked tokens belong to one draw."""
    text = list(range(300, 306))
    rows = make_rows([[text]] * 3000, vocabulary, 64, [[[True] + [False] * 5]] * 3000)
    kinds = collections.Counter()
    for policy in (POLICIES["span"], POLICIES["whole_word"]):
        masked = make(vocabulary, policy, share=0.8, most=6)(rows, keys_of(3000, 5))
        is_mask = (masked.ids[:, 1:7] == vocabulary.mask_id).sum(axis=1)
        is_kept = (masked.ids[:, 1:7] == text).sum(axis=1)
        if policy.draws_once:
            kinds = [(is_mask == 6).sum(), (is_kept == 6).sum()]
            kinds.append(3000 - sum(kinds))
            assert ((is_mask == 0) | (is_mask == 6)).all()
            assert fits(kinds, [0.8, 0.1, 0.1])
        else:
            assert np.mean((is_mask > 0) & (is_mask < 6)) > 0.6  # 1 - 0.8**6 - 0.2**6 = 0.74


@pytest.mark.parametrize("policy, sizes, budget", EXACT_CASES)
def test_choices_have_their_exact_probabilities(vocabulary, policy, sizes, budget):
    """All orders of the anchors and all runs are counted, against 60,000 rows."""
    segments = [list(range(300, 300 + sum(words))) for words in sizes]
    begins = [[at == 0 for size in words for at in range(size)] for words in sizes]
    rows = make_rows([segments], vocabulary, 64, [begins])
    units = classic.units_of(rows.is_text[0], rows.word_starts[0] | (not policy.of_words))
    expected = exact_choices(units, policy.run_shares, budget)
    count = 60_000
    rows = PackedRows(*(np.repeat(array, count, axis=0) for array in rows))
    share = budget / rows.lengths[0]
    masked = make(vocabulary, policy, share=share, most=budget)(rows, keys_of(count, 6))
    assert_chosen_as_expected(masked.positions, expected)


def test_a_row_depends_on_its_key_alone(vocabulary):
    rows, keys = random_rows(vocabulary, 200, seed=7), keys_of(200, 7)
    for name in POLICIES:
        masking = make(vocabulary, name)
        whole = masking(rows, keys)
        chosen = np.random.default_rng(8).permutation(200)[:50]
        part = masking(PackedRows(*(array[chosen] for array in rows)), keys[chosen])
        for found, expected in zip(part, whole, strict=True):
            assert (found == expected[chosen]).all()
        other = masking(rows, keys_of(200, 9))
        assert (other.positions != whole.positions).any(axis=1).mean() > 0.8


def test_a_cut_word_keeps_the_part_that_is_left(vocabulary):
    """A segment that begins inside a word begins a new unit there."""
    rows = make_rows(
        [[[500, 501], [502, 503, 504]]] * 200,
        vocabulary,
        64,
        [[[True, False], [False, False, True]]] * 200,
    )
    masked = make(vocabulary, "whole_word", share=0.3, most=2)(rows, keys_of(200))
    assert {tuple(row) for row in masked.positions.tolist()} == {(1, 2), (4, 5), (6, 0)}


def test_nothing_to_mask_is_no_error(vocabulary):
    rows = make_rows([], vocabulary, 64, [])
    assert make(vocabulary, "span")(rows, keys_of(0)).ids.shape == (0, 64)
    assert budgets(64, 0.0, 20).max() == 1
