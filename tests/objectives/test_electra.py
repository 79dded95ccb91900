"""Property tests of the examples of replaced_tokens: any texts, checked in plain Python."""

import laws
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from masked_rows import fits
from text_rows import (
    FIRST_OF_TEXT,
    LENGTH,
    MASK,
    VOCABULARY,
    Record,
    batch_of,
    numbers_of,
    records,
)

from nezha_tf.data import schema
from nezha_tf.objectives.dynamic_masking import DynamicMasking
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.policies import POLICIES
from nezha_tf.objectives.table import OBJECTIVES

LENGTHS = schema.Lengths(LENGTH, 4)
OBJECTIVE = OBJECTIVES["replaced_tokens"]
ROWS = st.lists(records(), min_size=1, max_size=6)
FULL = Record([FIRST_OF_TEXT + 5] * (LENGTH - 2), [], [1] * (LENGTH - 2), 0, 7)
SINGLE = Record([FIRST_OF_TEXT + 5], [], [1], 0, 7)


def examples_of(policy):
    masking = DynamicMasking(VOCABULARY, POLICIES[policy], LENGTHS, 0.15)
    return ExampleSettings(LENGTHS, VOCABULARY, masking)


def numpy_of(batch):
    return {name: values.numpy() for name, values in batch.items()}


def made(rows, seed, policy="token"):
    """Returns (unmasked records, masked examples, those of the objective), dicts of arrays."""
    examples, numbers = examples_of(policy), numbers_of(rows)
    batch = batch_of(rows)
    masked = examples.masking(batch, numbers, seed)
    found = batch
    for transform in OBJECTIVE.transforms(examples):
        found = transform(found, numbers, seed)
    return numpy_of(batch), numpy_of(masked), numpy_of(found)


@laws.examples(25)
@given(ROWS, st.integers(), st.sampled_from(["token", "whole_word", "span"]))
@example([FULL, SINGLE], 0, "token")
def test_predicted_tokens_are_masked_or_kept_and_all_others_stay(rows, seed, policy):
    before, masked, found = made(rows, seed, policy)
    assert found.keys() == {
        feature.name for feature in OBJECTIVE.transforms(examples_of(policy))[-1].gives
    }
    for name in ("positions", "ids", "weights"):
        np.testing.assert_array_equal(found[f"generator_{name}"], masked[f"masked_lm_{name}"])
    for name in ("input_mask", "segment_ids"):
        np.testing.assert_array_equal(found[name], before[name])
    for row in range(len(rows)):
        ids, original = found["input_ids"][row].tolist(), before["input_ids"][row].tolist()
        weights = found["generator_weights"][row].tolist()
        count = weights.count(1.0)
        # There is none if the first word is longer than the budget.
        assert (count > 0 or policy != "token") and weights == [1.0] * count + [0.0] * (
            len(weights) - count
        )
        for place, token in zip(
            found["generator_positions"][row, :count],
            found["generator_ids"][row, :count],
            strict=True,
        ):
            assert token == original[place] and ids[place] in (MASK, token)
            ids[place] = token
        assert ids == original


def test_85_percent_of_them_are_masked():
    """Also those that the masking before had kept or replaced by random tokens."""
    text = list(range(FIRST_OF_TEXT, FIRST_OF_TEXT + 20))
    rows = [Record(text, [], [1] * 20, 0, number) for number in range(4000)]
    _, masked, found = made(rows, 3)
    rows, slots = np.nonzero(found["generator_weights"])
    places = found["generator_positions"][rows, slots]
    is_masked = found["input_ids"][rows, places] == MASK
    was_masked = masked["input_ids"][rows, places] == MASK
    for part in (is_masked[was_masked], is_masked[~was_masked]):
        assert 2000 < len(part) and abs(part.mean() - 0.85) < 4.5 * (0.1275 / len(part)) ** 0.5
    # In each slot and at each place alike.
    by_slot = np.bincount(slots[is_masked], minlength=3)
    assert fits(np.bincount(places[is_masked])[1:9], [1] * 8) and np.ptp(by_slot) < 200


def test_masked_records_need_no_other_masking():
    examples = ExampleSettings(LENGTHS, VOCABULARY)
    assert len(OBJECTIVE.transforms(examples)) == 1
    assert OBJECTIVE.begins_with(examples) == schema.FEATURES
    assert OBJECTIVE.begins_with(examples_of("token")) == schema.UNMASKED_FEATURES
