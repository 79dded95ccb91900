"""Masking on arrays: by hand for any rows, the policies' numbers, and exact probabilities."""

import classic
import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_rows import (
    EXACT_CASES,
    any_policies,
    any_shares,
    any_texts,
    assert_chosen_as_expected,
    assert_rows_are_masked,
    exact_case,
    fits,
    keys_of,
    make_rows,
    random_rows,
)

from nezha_tf.corpus.packing import PackedRows
from nezha_tf.data import schema
from nezha_tf.objectives.array_masking import ArrayMasking, MaskUnits
from nezha_tf.objectives.policies import POLICIES, budgets


def make(vocabulary, name, share=0.15, most=20, length=64):
    policy = POLICIES[name] if isinstance(name, str) else name
    return ArrayMasking(vocabulary, policy, schema.Lengths(length, most), share)


def mean_run(name):
    shares = np.array(POLICIES[name].run_shares)
    return (shares / shares.sum()) @ np.arange(1, len(shares) + 1)


def test_run_lengths_are_those_of_the_papers():
    assert POLICIES["ngram"].run_ends == pytest.approx([0.8, 0.9])
    assert len(POLICIES["span"].run_shares) == 10
    assert mean_run("span") == pytest.approx(3.8, abs=0.01)  # SpanBERT §3.1
    assert [name for name in POLICIES if mean_run(name) == 1] == ["whole_word", "token", "entity"]


def test_budgets_are_those_of_the_original():
    for share, most in ((0.15, 20), (0.3, 5), (0.125, 100)):
        expected = [min(most, max(1, round(length * share))) for length in range(129)]
        assert budgets(128, share, most).tolist() == expected


@st.composite
def cases(draw):
    """Draws (length, texts, begins, policy, share, most, seed of the keys)."""
    length = draw(st.sampled_from([24, 40]) | st.integers(4, 40))
    share, most = draw(any_shares()), draw(st.just(24) | st.integers(1, 9))
    texts, begins = draw(any_texts(length))
    return length, texts, begins, draw(any_policies()), share, most, draw(st.integers(0, 2**32))


@laws.examples(150)
@given(cases())
def test_rows_are_masked_as_by_hand(vocabulary, case):
    length, texts, begins, policy, share, most, seed = case
    rows, keys = make_rows(texts, vocabulary, length, begins), keys_of(len(texts), seed)
    masked = ArrayMasking(vocabulary, policy, schema.Lengths(length, most), share)(rows, keys)
    assert_rows_are_masked(rows, masked, policy, share, most)
    for number, key in enumerate(keys.tolist()):
        row = PackedRows(*(array[number] for array in rows))
        budget = min(most, max(1, round(int(row.lengths) * share)))
        ids, labels = classic.mask_by_key(row, key, policy, budget, vocabulary)
        assert masked.ids[number].tolist() == ids
        assert masked.positions[number, : len(labels)].tolist() == list(labels)
        assert masked.labels[number, : len(labels)].tolist() == list(labels.values())
        assert masked.weights[number].sum() == len(labels)


def test_shares_of_what_stands_in_the_place(vocabulary):
    """Over 100,000 predicted tokens."""
    rows = random_rows(vocabulary, 20_000, seed=3, words=0.8)
    masked = make(vocabulary, "ngram", share=0.3)(rows, keys_of(20_000, 3))
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
    units = MaskUnits.of(rows, of_words=True)
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
    rows, share, expected = exact_case(vocabulary, policy, sizes, budget, 64)
    masked = make(vocabulary, policy, share=share, most=budget)(rows, keys_of(60_000, 6))
    assert_chosen_as_expected(masked.positions, expected)


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
