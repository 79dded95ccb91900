"""Batches of similar lengths: complete, with little padding, each example once per epoch."""

import collections
import itertools

import numpy as np
import pytest

from nezha_tf.data.in_memory import ArrayReader, bucket_lengths

LONGEST = 100


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


def test_a_batch_holds_its_examples_padded_to_the_next_bucket():
    held = arrays(203)
    reader = ArrayReader(held, LONGEST)
    buckets = (32, 64, 96, LONGEST)
    for batch in as_numpy(reader.training_batches(8, seed=1).take(60)):
        longest = max(len(held["input_ids"][index]) for index in batch["example_index"])
        length = next(bucket for bucket in buckets if bucket >= longest)
        assert batch["input_ids"].shape == (8, length)
        for row, index in enumerate(batch["example_index"]):
            size = len(held["input_ids"][index])
            assert batch["input_mask"][row].tolist() == [1] * size + [0] * (length - size)
            for name in ("input_ids", "segment_ids"):
                assert batch[name][row].tolist() == [*held[name][index], *[0] * (length - size)]
            assert batch["label_ids"][row] == held["label_ids"][index]
            assert (batch["values"][row] == held["values"][index]).all()


def test_without_buckets_every_batch_has_one_static_length():
    batches = ArrayReader(arrays(20), 128, bucket_by_length=False).training_batches(4, seed=1)
    assert batches.element_spec["input_ids"].shape[1] == 128


@pytest.mark.parametrize("count, batch_size", ((203, 8), (64, 8), (5, 8)))
def test_an_epoch_has_every_example_and_repeats_only_to_fill_its_last_batch(count, batch_size):
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


@pytest.mark.parametrize("skip", (0, 4, 31))
def test_a_resumed_run_and_several_workers_get_the_same_batches(skip):
    reader = ArrayReader(arrays(101), LONGEST)
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
