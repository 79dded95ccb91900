"""Batches of examples in memory: epochs, shards, resumption."""

import time

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.data.draws import graph_example_seed
from nezha_tf.data.in_memory import InMemoryReader, TokenBudgetReader
from nezha_tf.training.batch_sizes import BatchSizes
from nezha_tf.training.loop import Feed
from nezha_tf.util.errors import UserError

EXAMPLES = 23


def features(index, seed, epoch):
    """Returns an example's number, its epoch, and a number drawn for it in this epoch."""
    drawn = tf.random.stateless_uniform([1], graph_example_seed(seed, epoch, index))
    return {"pair": tf.cast(tf.stack([index, epoch]), tf.int32), "drawn": drawn}


def reader():
    return InMemoryReader(EXAMPLES, features)


def values(batches, count=None):
    batches = batches if count is None else batches.take(count)
    return [(b["pair"].numpy().tolist(), b["drawn"].numpy().tolist()) for b in batches]


def test_each_epoch_is_another_permutation_of_all_examples():
    batches = reader().training_batches(5, seed=3)
    assert batches.element_spec["pair"] == tf.TensorSpec((5, 2), tf.int32)
    assert batches.element_spec["drawn"] == tf.TensorSpec((5, 1), tf.float32)
    assert batches.cardinality() == tf.data.INFINITE_CARDINALITY
    seen = [tuple(pair) for pairs, _ in values(batches, 4 * EXAMPLES) for pair in pairs]
    epochs = [seen[start : start + EXAMPLES] for start in range(0, len(seen), EXAMPLES)]
    assert len(epochs) == 20
    for number, epoch in enumerate(epochs):
        assert sorted(epoch) == [(index, number) for index in range(EXAMPLES)]
    assert len({tuple(index for index, _ in epoch) for epoch in epochs}) == 20


def test_an_epoch_draws_anew_and_a_seed_too():
    def drawn(seed):
        found = values(reader().training_batches(EXAMPLES, seed), 3)
        pairs = [(p, d[0]) for ps, ds in found for p, d in zip(ps, ds, strict=True)]
        return {tuple(pair): number for pair, number in pairs}

    first, second = drawn(1), drawn(2)
    assert first == drawn(1)
    numbers = [*first.values(), *second.values()]
    assert len(set(numbers)) > 0.99 * len(numbers)


@pytest.mark.parametrize("batch_size", (5, 60))
def test_a_resumed_run_gets_the_batches_of_an_uninterrupted_one(batch_size):
    whole = values(reader().training_batches(batch_size, 5), 40)
    for skip in (4, 31):
        resumed = reader().training_batches(batch_size, 5, skip_batches=skip)
        assert values(resumed, 40 - skip) == whole[skip:]


def test_shards_part_the_batches_of_one_pipeline():
    """Of every 3 * 4 examples each pipeline makes 4, also when it starts in the middle."""
    whole = values(reader().training_batches(4, 5), 12 * 3)
    for shard, skip in ((0, 0), (1, 3), (2, 7)):
        part = reader().training_batches(4, 5, skip, num_shards=3, shard=shard)
        assert values(part, 12 - skip) == whole[shard::3][skip:]


def test_replicas_get_the_batches_of_one():
    devices = [device.name for device in tf.config.list_logical_devices("CPU")[:2]]
    place = tf.distribute.MirroredStrategy(devices)
    batches = Feed(place, reader(), BatchSizes(6), seed=5).batches(2)
    whole = values(reader().training_batches(6, 5), 6)[2:]
    for pairs, _ in whole:
        parts = place.experimental_local_results(next(batches)["pair"])
        assert np.concatenate([part.numpy() for part in parts]).tolist() == pairs
    # Batches by tokens have several numbers of examples.
    ids = [np.ones(n, "int32") for n in (3, 40, 70, 20, 90, 30, 50)]
    by_tokens = TokenBudgetReader({"input_ids": ids}, 100)
    batches = Feed(place, by_tokens, BatchSizes(2), seed=5).batches(0)
    for whole in by_tokens.training_batches(2, 5).take(6):
        parts = place.experimental_local_results(next(batches)["example_index"])
        assert len(parts[0]) == len(parts[1])
        assert np.concatenate(parts).tolist() == whole["example_index"].numpy().tolist()
    # TensorFlow 2.21 sometimes crashes when an iterator of several replicas is deleted while its
    # thread reads. Here the thread soon waits, as the buffers are full.
    time.sleep(0.2)


def test_evaluation_batches_are_in_order_and_the_same_each_time():
    found = values(reader().evaluation_batches(5, 100))
    assert [index for pairs, _ in found for index, _ in pairs] == list(range(EXAMPLES))
    assert [len(pairs) for pairs, _ in found] == [5, 5, 5, 5, 3]
    assert values(reader().evaluation_batches(5, 100)) == found
    assert values(reader().evaluation_batches(5, 3, skip_batches=1)) == found[1:3]
    guarded = reader().guarded(lambda skip_batches: reader().evaluation_batches(5, 2, skip_batches))
    assert values(guarded) == found[:2]


def test_what_cannot_be():
    with pytest.raises(UserError, match="pass --input_sharding=element"):
        reader().training_batches(4, 5, num_shards=2, by="file")
    with pytest.raises(ValueError, match="no example"):
        InMemoryReader(0, features)
