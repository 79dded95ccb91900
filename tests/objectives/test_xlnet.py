"""Permutation LM: XLNet's own masks exactly, and its spans by a plain loop."""

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from text_rows import FIRST_OF_TEXT, LENGTH, SEP, VOCABULARY, Record, batch_of, numbers_of, records

from nezha_tf.data import schema
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives import xlnet
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.util.errors import UserError

XLNET_CLS, XLNET_SEP = 3, 4
EXAMPLES = ExampleSettings(schema.Lengths(LENGTH, 4), VOCABULARY)


@pytest.mark.parametrize("case", range(5))
def test_masks_are_those_of_xlnet(golden, case):
    """Which tokens a prediction does not see, and which tokens the others do not see."""
    figures = golden("xlnet_local_perm")
    given = {name.split(".")[1]: v for name, v in figures.items() if name.startswith(f"{case}.")}
    ids, is_masked = given["input_ids"], given["is_masked"]
    is_special = (ids == XLNET_CLS) | (ids == XLNET_SEP)
    ranks = xlnet.factorization_ranks(
        tf.constant([~is_special & ~is_masked]), tf.constant([given["shuffle"]], tf.int32)
    )
    input_mask = tf.ones_like(ranks)
    places = tf.range(len(ids))[None]
    of_queries = attention_mask.strictly_below(ranks, input_mask, places)[0, 0].numpy()
    of_tokens = attention_mask.from_ranks(ranks, input_mask)[0, 0].numpy()
    hidden = given["perm_mask"].astype(bool)
    is_target = given["target_mask"].astype(bool)
    np.testing.assert_array_equal(is_target, is_masked & ~is_special)
    np.testing.assert_array_equal(of_queries[is_target], ~hidden[is_target])
    # The stream of the tokens sees the same, and each token itself.
    np.testing.assert_array_equal(of_tokens, ~hidden | np.eye(len(ids), dtype=bool))


def spans_by_hand(starts, count, goal, sizes, contexts):
    """Returns (set of chosen places, number that is missing), by XLNet's loop."""
    chosen, first, number = set(), 0, 0
    ends = np.cumsum(1 / np.arange(1, 6)) / np.sum(1 / np.arange(1, 6))
    while first < count and len(chosen) < goal:
        size = min(1 + int(np.searchsorted(ends[:-1], sizes[number], "right")), goal - len(chosen))
        before = int(contexts[number] * size * 6)
        begin = next((p for p in range(first + before, count) if starts[p]), count)
        if begin + size >= count:
            break
        chosen |= set(range(begin, begin + size))
        first, number = begin + size + size * 6 - before, number + 1
    return chosen, goal - len(chosen)


@laws.examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60), st.floats(0.2, 1))
def test_spans_are_those_of_a_plain_loop(seed, length, share):
    rng = np.random.default_rng(seed)
    starts = rng.random((4, length)) < share
    counts = rng.integers(1, length + 1, 4)
    starts &= np.arange(length) < counts[:, None]
    goals = rng.integers(1, length // 3 + 1, 4)
    sizes, contexts = rng.random((2, 4, length))
    chosen, left = xlnet.choose_spans(
        tf.constant(starts),
        tf.constant(counts, tf.int32),
        tf.constant(goals, tf.int32),
        tf.constant(sizes),
        tf.constant(contexts),
    )
    for row in range(4):
        arguments = starts[row], counts[row], goals[row], sizes[row], contexts[row]
        found = set(np.flatnonzero(chosen[row]).tolist()), int(left[row])
        assert found == spans_by_hand(*arguments)


@laws.examples(25)
@given(st.lists(records(), min_size=1, max_size=6), st.integers(), st.none() | st.integers(1, 12))
def test_tokens_stay_and_targets_are_of_the_text(rows, seed, num_predict):
    examples = EXAMPLES._replace(num_predict=num_predict)
    most = num_predict or LENGTH // 6
    given, [transform] = batch_of(rows), OBJECTIVES["permutation"].transforms(examples)
    batch = transform(given, numbers_of(rows), seed)
    assert {
        f.name: (batch[f.name].dtype.is_floating, batch[f.name].shape[1]) for f in transform.gives
    } == {
        f.name: (f.dtype is np.float32, OBJECTIVES["permutation"].lengths(examples).of(f))
        for f in transform.gives
    }
    for name in ("input_ids", "input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(batch[name], given[name])
    for row, record in enumerate(rows):
        ids, ranks = given["input_ids"][row].numpy(), batch["permutation_ranks"][row].numpy()
        count = int(given["input_mask"][row].numpy().sum())
        goal = max(1, round(count * most / LENGTH))
        weights = batch["masked_lm_weights"][row].numpy()
        found = int(weights.sum())
        assert weights.tolist() == [1.0] * found + [0.0] * (most - found) and found <= goal
        places = batch["masked_lm_positions"][row].numpy()[:found].tolist()
        assert places == sorted(set(places)) and not (
            {0, count - 1} | set(np.flatnonzero(ids == SEP))
        ) & set(places)
        assert batch["masked_lm_ids"][row].numpy().tolist() == ids[places].tolist() + [0] * (
            most - found
        )
        # What is not predicted is seen by all, except [CLS] and [SEP], which have an order too.
        ranked = set(np.flatnonzero(ranks[:count]).tolist())
        special = {0, count - 1, len(record.first) + 1}
        if set(places) | special == set(range(count)):  # all text is predicted
            special -= {0}
        assert ranked == set(places) | special
        assert len(set(ranks[ranks > 0].tolist())) == (ranks > 0).sum()


@laws.examples(25)
@given(st.lists(records(), min_size=1, max_size=6), st.integers(), st.integers(1, LENGTH - 1))
@example([Record([FIRST_OF_TEXT], [], [1], 0, n) for n in range(9)], 0, LENGTH - 1)
def test_each_prediction_sees_a_token_that_is_not_itself(rows, seed, num_predict):
    """Else its softmax would be over all tokens, its own and the padding among them."""
    [transform] = OBJECTIVES["permutation"].transforms(EXAMPLES._replace(num_predict=num_predict))
    batch = transform(batch_of(rows), numbers_of(rows), seed)
    ranks, positions = batch["permutation_ranks"], batch["masked_lm_positions"]
    seen = attention_mask.strictly_below(ranks, batch["input_mask"], positions)[:, 0].numpy()
    is_itself = positions.numpy()[..., None] == np.arange(LENGTH)
    is_there = batch["masked_lm_weights"].numpy() > 0
    assert (seen & ~is_itself).any(axis=-1)[is_there].all()
    assert not (seen & is_itself)[is_there].any()


def test_sizes_of_spans_are_inverse_to_their_numbers():
    """Spans that are drawn first have 1 to 5 tokens, n with a probability proportional to 1/n."""
    rng = np.random.default_rng(0)
    rows, length = 3000, 60
    starts = tf.ones((rows, length), tf.bool)
    counts, goals = tf.fill((rows,), length), tf.fill((rows,), 5)
    contexts = tf.zeros((rows, length), tf.float64)
    chosen, _ = xlnet.choose_spans(
        starts, counts, goals, tf.constant(rng.random((rows, length))), contexts
    )
    first = np.argmin(chosen.numpy(), axis=1)  # without a context before it, it begins at 0
    shares = 1 / np.arange(1, 6)
    expected = rows * shares / shares.sum()
    found = np.bincount(first, minlength=6)[1:6]
    assert (np.abs(found - expected) < 4.5 * expected**0.5).all()


def test_more_predictions_than_places_are_refused():
    with pytest.raises(UserError, match=f"--num_predict={LENGTH} does not fit"):
        OBJECTIVES["permutation"].transforms(EXAMPLES._replace(num_predict=LENGTH))
