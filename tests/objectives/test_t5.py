"""Span corruption against T5's own functions, with their draws put in from outside."""

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.objectives import t5
from nezha_tf.objectives.texts import TokenRows

CASES = range(6)
FIRST_SENTINEL = 21227


@pytest.fixture(scope="module")
def figures(golden):
    return golden("t5_span_corruption")


def lengths_of(starts, count):
    """Returns the lengths of segments for T5's starts, which leave out the first item."""
    return t5.segment_lengths(tf.constant([[1, *starts]], tf.int32), count)


@pytest.mark.parametrize("case", CASES)
def test_masks_inputs_and_targets_are_those_of_t5(figures, case):
    given = {name.split(".")[1]: v for name, v in figures.items() if name.startswith(f"{case}.")}
    length = int(given["length"])
    noise, count = t5.span_counts(
        [length], float(given["noise_density"]), float(given["mean_noise_span_length"])
    )
    starts = given["nonnoise_starts"], given["noise_starts"]
    assert [len(part) + 1 for part in starts] == [length - noise[0], noise[0]]
    lengths = [lengths_of(part, int(count[0])) for part in starts]
    is_noise = t5.noise_mask(*lengths, length)
    np.testing.assert_array_equal(is_noise[0], given["noise_mask"])
    texts = TokenRows(tf.constant(given["tokens"][None]), tf.constant([length]))
    sentinels = np.arange(FIRST_SENTINEL, FIRST_SENTINEL - int(count[0]), -1, np.int32)
    sides = t5.with_sentinels(texts, is_noise, sentinels)
    for side, expected in zip(sides, (given["inputs"], given["targets"]), strict=True):
        assert side.counts.numpy().tolist() == [len(expected)]
        np.testing.assert_array_equal(side.ids[0, : len(expected)], expected)


def test_numbers_of_noise_and_spans_are_those_of_t5s_helper(figures):
    """The longest text whose inputs, with an end, are not longer than asked for."""
    for inputs_length, density, mean, tokens_length, targets_length in figures["helper"]:
        counts = np.arange(2, 4 * int(inputs_length))
        noise, count = t5.span_counts(counts, density, mean)
        count[noise / mean <= 0.5] = 0  # The helper forgets that there is one span at least.
        longest = np.flatnonzero(counts - noise + count + 1 <= inputs_length)[-1]
        targets = (noise + count + 1)[longest]
        # T5's helper shortens texts of which half is noise, if the targets are longer.
        shorter = int(density == 0.5 and targets > inputs_length)
        assert (counts[longest] - shorter, targets - shorter) == (tokens_length, targets_length)
