"""Batches of similar lengths: complete, with little padding, each example once per epoch."""

import collections
import itertools

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.data.in_memory import ArrayReader, TokenBudgetReader, bucket_lengths

LONGEST = 100
# Of the law.
LONGEST_DRAWN = 70
BUCKETS = (32, 64, LONGEST_DRAWN)


def arrays(count, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, LONGEST + 1, count)
    return {
        "input_ids": [rng.integers(1, 99, n).astype("int32") for n in lengths],
        "segment_ids": [rng.integers(0, 2, n).astype("int32") for n in lengths],
        "label_ids": rng.integers(0, 5, count).astype("int32"),
        "values": rng.normal(size=(count, 2)).astype("float32"),
    }


def as_numpy(batches):
    return [{name: values.numpy() for name, values in batch.items()} for batch in batches]


def test_an_epoch_has_every_example_and_repeats_only_to_fill_its_last_batch():
    count, batch_size = 203, 8
    reader = ArrayReader(arrays(count), LONGEST)
    per_epoch = -(-count // batch_size)
    assert reader.batches_per_epoch(batch_size) == per_epoch
    batches = as_numpy(reader.training_batches(batch_size, seed=3).take(3 * per_epoch))
    orders = set()
    for first in range(0, len(batches), per_epoch):
        order = np.concatenate([b["example_index"] for b in batches[first : first + per_epoch]])
        times = collections.Counter(order.tolist())
        assert sorted(times) == list(range(count))
        assert len(order) == per_epoch * batch_size and sum(times.values()) == len(order)
        orders.add(tuple(order))
    assert len(orders) == 3


def test_batches_of_like_lengths_pad_far_less_than_shuffled_ones():
    held = arrays(2000)
    batches = as_numpy(ArrayReader(held, LONGEST).training_batches(16, seed=2).take(125))
    tokens = sum(map(len, held["input_ids"]))
    assert sum(batch["input_ids"].size for batch in batches) < 1.35 * tokens
    # They are still shuffled: the lengths of successive batches do not rise.
    lengths = [batch["input_ids"].shape[1] for batch in batches]
    assert sum(a > b for a, b in itertools.pairwise(lengths)) > 20


@pytest.mark.parametrize("kind", [ArrayReader, TokenBudgetReader])
def test_a_resumed_run_and_several_workers_get_the_same_batches(kind):
    skip = 31
    reader = kind(arrays(101), LONGEST)
    whole = as_numpy(reader.training_batches(6, 5).take(40))[skip:]
    resumed = as_numpy(reader.training_batches(6, 5, skip_batches=skip).take(40 - skip))
    halves = [
        as_numpy(reader.training_batches(3, 5, skip, num_shards=2, shard=s).take(40 - skip))
        for s in (0, 1)
    ]
    for batch, again, *parts in zip(whole, resumed, *halves, strict=True):
        assert batch["example_index"].tolist() == again["example_index"].tolist()
        together = np.concatenate([part["example_index"] for part in parts])
        assert batch["example_index"].tolist() == together.tolist()


def test_evaluation_goes_by_rising_length_over_all_or_the_first_examples():
    held = arrays(50)
    reader = ArrayReader(held, LONGEST)
    batches = as_numpy(reader.evaluation_batches(8))
    order = np.concatenate([batch["example_index"] for batch in batches])
    lengths = [len(held["input_ids"][index]) for index in order]
    assert sorted(order) == list(range(50)) and lengths == sorted(lengths)
    assert [len(batch["label_ids"]) for batch in batches] == [8] * 6 + [2]
    few = np.concatenate([b["example_index"] for b in as_numpy(reader.evaluation_batches(8, 3))])
    assert sorted(few) == list(range(24))
    rest = as_numpy(reader.evaluation_batches(8, skip_batches=5))
    assert [b["example_index"].tolist() for b in rest] == [
        order[40:48].tolist(),
        order[48:].tolist(),
    ]


def test_buckets_end_at_the_bound():
    assert bucket_lengths(20) == [20] and bucket_lengths(5000)[-1] == 5000
    assert bucket_lengths(128) == [32, 64, 96, 128]
    assert bucket_lengths(512) == [32, 64, 96, 128, 192, 256, 384, 512]
    lengths = bucket_lengths(5000)
    assert all(b <= 1.5 * a for a, b in itertools.pairwise(lengths[3:]))


@st.composite
def drawn_arrays(draw):
    """Returns (arrays as the reader takes them, the same as lists of lists of sequences)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, choices = draw(st.integers(1, 25)), draw(st.integers(0, 4))
    are_alike = choices and draw(st.booleans())  # arrays [C, n] instead of lists
    shape = (count, 1) if are_alike else (count, max(choices, 1))
    lengths = np.broadcast_to(rng.integers(1, LONGEST_DRAWN + 1, shape), (count, max(choices, 1)))
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
@given(drawn_arrays(), st.integers(1, 6), st.booleans(), st.booleans())
def test_batches_hold_each_example_whole(values, batch_size, buckets_by_length, any_length):
    arrays, plain, choices = values
    reader = ArrayReader(arrays, LONGEST_DRAWN, buckets_by_length, any_length)
    buckets = range(1, LONGEST_DRAWN + 1) if any_length else BUCKETS
    if not buckets_by_length:
        buckets = (LONGEST_DRAWN,)
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
    reader = ArrayReader({"input_ids": rows}, LONGEST_DRAWN, bucket_by_length=False)
    training, evaluation = reader.training_batches(2, seed=1), reader.evaluation_batches(2)
    for batches, size in ((training, 2), (evaluation, None)):
        assert batches.element_spec["input_ids"].shape.as_list() == [size, 2, LONGEST_DRAWN]
        assert batches.element_spec["input_mask"].shape.as_list() == [size, 2, LONGEST_DRAWN]
    with pytest.raises(ValueError, match="some examples have 1 sequences, others 2"):
        ArrayReader({"input_ids": [*rows, rows[0][:1]]}, LONGEST_DRAWN)


@laws.examples(15)
@given(drawn_arrays(), st.integers(1, 4))
def test_batches_by_tokens_are_full_of_one_bucket(values, batch_size):
    """Of each bucket as many examples as have no more tokens than a batch of the longest ones."""
    arrays, plain, choices = values
    reader = TokenBudgetReader(arrays, LONGEST_DRAWN)
    sizes = {bucket: batch_size * (LONGEST_DRAWN // bucket) for bucket in BUCKETS}
    longest = [max(map(len, row)) for row in plain["input_ids"]]
    bucket_of = [next(bucket for bucket in BUCKETS if bucket >= n) for n in longest]
    counts = collections.Counter(bucket_of)
    per_epoch = sum(-(-n // sizes[bucket]) for bucket, n in counts.items())
    assert reader.batches_per_epoch(batch_size) == per_epoch
    batches = as_numpy(reader.training_batches(batch_size, seed=1).take(2 * per_epoch))
    orders = []
    for first in (0, per_epoch):
        times = collections.Counter()
        for batch in batches[first : first + per_epoch]:
            assert_is_batch(batch, arrays, plain, choices, BUCKETS)
            index = batch["example_index"].tolist()
            [bucket] = {bucket_of[i] for i in index}
            assert len(index) == sizes[bucket]
            assert len(index) * bucket <= batch_size * LONGEST_DRAWN
            times.update(index)
        assert sorted(times) == list(range(len(longest)))
        for bucket, n in counts.items():  # Only the bucket's last batch is filled up.
            seen = [times[i] for i in range(len(longest)) if bucket_of[i] == bucket]
            assert sum(seen) == -(-n // sizes[bucket]) * sizes[bucket]
            assert max(seen) - min(seen) <= 1
        orders.append([batch["example_index"].tolist() for batch in batches[first:]][:per_epoch])
    assert len(longest) < 12 or orders[0] != orders[1]


def test_batches_by_tokens_are_fewer_and_hardly_emptier():
    held, longest = arrays(2000), 128
    plain, full = (kind(held, longest) for kind in (ArrayReader, TokenBudgetReader))
    assert full.batches_per_epoch(16) < 0.8 * plain.batches_per_epoch(16)
    batches = as_numpy(full.training_batches(16, seed=2).take(full.batches_per_epoch(16)))
    sizes = [batch["input_ids"].size for batch in batches]
    assert min(sizes) >= 0.75 * 16 * longest and max(sizes) == 16 * longest
