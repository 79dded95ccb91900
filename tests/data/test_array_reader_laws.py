"""Property tests of batches of similar lengths, with one or several sequences per example."""

import collections

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.data.in_memory import ArrayReader

LONGEST = 70
BUCKETS = (32, 64, LONGEST)


@st.composite
def held(draw):
    """Returns (arrays as the reader takes them, the same as lists of lists of sequences)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, choices = draw(st.integers(1, 25)), draw(st.integers(0, 4))
    are_alike = choices and draw(st.booleans())  # arrays [C, n] instead of lists
    shape = (count, 1) if are_alike else (count, max(choices, 1))
    lengths = np.broadcast_to(rng.integers(1, LONGEST + 1, shape), (count, max(choices, 1)))
    arrays, plain = {"label_ids": rng.integers(0, 9, (count, 2)).astype("int32")}, {}
    for name in ("input_ids", "segment_ids"):
        drawn = [[rng.integers(1, 99, n).astype("int32") for n in row] for row in lengths]
        plain[name] = [[sequence.tolist() for sequence in row] for row in drawn]
        if not choices:
            arrays[name] = [row[0] for row in drawn]
        else:
            arrays[name] = [np.stack(row) for row in drawn] if are_alike else drawn
    return arrays, plain, choices


def assert_is_batch(batch, arrays, plain, choices, buckets):
    """Asserts that a batch contains its examples, padded with zeros only as far as needed."""
    index = batch["example_index"]
    longest = max(len(sequence) for i in index for sequence in plain["input_ids"][i])
    length = next(bucket for bucket in buckets if bucket >= longest)
    inner = (choices, length) if choices else (length,)
    for name in (*plain, "input_mask"):
        assert batch[name].shape == (len(index), *inner)
    for row, i in enumerate(index):
        for name, values in plain.items():
            padded = [sequence + [0] * (length - len(sequence)) for sequence in values[i]]
            assert batch[name][row].tolist() == (padded if choices else padded[0])
        ones = [[1] * len(s) + [0] * (length - len(s)) for s in plain["input_ids"][i]]
        assert batch["input_mask"][row].tolist() == (ones if choices else ones[0])
        assert batch["label_ids"][row].tolist() == arrays["label_ids"][i].tolist()


@laws.examples(15)
@given(held(), st.integers(1, 6), st.booleans())
def test_batches_hold_each_example_whole(values, batch_size, buckets_by_length):
    arrays, plain, choices = values
    reader = ArrayReader(arrays, LONGEST, buckets_by_length)
    buckets = BUCKETS if buckets_by_length else (LONGEST,)
    count = len(plain["input_ids"])
    per_epoch = reader.batches_per_epoch(batch_size)
    training = reader.training_batches(batch_size, seed=1)
    evaluation = reader.evaluation_batches(batch_size)
    for batches, repeats in ((training.take(per_epoch), True), (evaluation, False)):
        seen = []
        for batch in batches.as_numpy_iterator():
            assert_is_batch(batch, arrays, plain, choices, buckets)
            seen += batch["example_index"].tolist()
        times = collections.Counter(seen)
        assert sorted(times) == list(range(count))
        assert repeats or len(seen) == count
    # The last examples: evaluation sorts by the length of the longest sequence.
    lengths = [max(map(len, plain["input_ids"][i])) for i in seen]
    assert lengths == sorted(lengths)
    padded = [next(b for b in buckets if b >= n) for n in lengths]
    assert reader.mean_length == int(np.mean(padded))


def test_the_number_of_sequences_is_known_and_the_same():
    rows = [[np.ones(3, "int32")] * 2] * 3
    reader = ArrayReader({"input_ids": rows}, LONGEST, bucket_by_length=False)
    for batches in (reader.training_batches(2, seed=1), reader.evaluation_batches(2)):
        assert batches.element_spec["input_ids"].shape.as_list() == [None, 2, LONGEST]
        assert batches.element_spec["input_mask"].shape.as_list() == [None, 2, LONGEST]
    with pytest.raises(ValueError, match="some examples have 1 sequences, others 2"):
        ArrayReader({"input_ids": [*rows, rows[0][:1]]}, LONGEST)
