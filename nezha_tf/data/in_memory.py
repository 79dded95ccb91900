"""Batches of examples that are held in memory, with the interface of `ExampleReader`."""

import functools

import numpy as np
import tensorflow as tf

from nezha_tf.errors import UserError

# Of the features of evaluation batches, which are the same each time.
EVALUATION_SEED = 0


class InMemoryReader:
    """Makes batches of a task's examples, anew for each epoch where the task draws something.

    Batches are dicts of feature name to int32 or float32 tensor [B, ...]. Batch n of a run is a
    function of the seed and n alone, so that a run which goes on needs nothing but n.
    """

    corrupt_records = 0  # Each example was looked at when it was read.

    def __init__(self, num_examples, make_features):
        """Args:
        num_examples: how many examples there are, at least 1.
        make_features: callable (indices, seed, epochs) -> dict of feature name to int32 or
          float32 array [B, ...] of fixed lengths: the features of the examples `indices`, int
          array [B], each in the epoch of `epochs`, int array [B]. What it draws depends on the
          seed, the epoch and the example alone: see `generator`.
        """
        if num_examples < 1:
            raise ValueError("no example")
        self.num_examples = num_examples
        self._make_features = make_features
        first = make_features(np.array([0]), EVALUATION_SEED, np.array([0]))
        self._names = list(first)
        self._dtypes = [values.dtype for values in first.values()]
        self._shapes = [values.shape[1:] for values in first.values()]
        self._order = functools.lru_cache(maxsize=2)(self._shuffled)

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns endless batches in a shuffled order that the seed fixes.

        Args:
          batch_size: B, the examples that this pipeline yields at a time; every batch is full.
          seed: of the order, which is another in each epoch, and of what features draw.
          skip_batches: batches to leave out at the start, where a run goes on.
          num_shards: pipelines that share the examples: of each `num_shards * B` consecutive
            ones each makes its B.
          shard: which of them this is, from 0.
          by: "element"; several pipelines have no files of their own here.

        Raises:
          UserError: several pipelines, and `by` is "file".
        """
        if by == "file" and num_shards > 1:
            raise UserError(
                "--input_sharding=file is for TFRecords; these examples are held in memory, so "
                "pass --input_sharding=element"
            )

        def batch(number):
            places = np.arange(number * batch_size, (number + 1) * batch_size)
            epochs, places = np.divmod(places, self.num_examples)
            orders = {epoch: self._order(seed, int(epoch)) for epoch in np.unique(epochs)}
            pairs = zip(epochs, places, strict=True)
            indices = np.array([orders[epoch][place] for epoch, place in pairs])
            return self._make_features(indices, seed, epochs)

        numbers = tf.data.Dataset.counter(skip_batches * num_shards + shard, num_shards)
        return self._batches(numbers, batch, batch_size)

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns at most `max_batches` batches in the examples' order; the last may be short.

        Args:
          batch_size: B.
          max_batches: bound on the batches, with those that are left out.
          skip_batches: batches to leave out at the start.
        """

        def batch(number):
            first = number * batch_size
            indices = np.arange(first, min(first + batch_size, self.num_examples))
            return self._make_features(indices, EVALUATION_SEED, np.zeros_like(indices))

        whole = -(-self.num_examples // batch_size)
        numbers = tf.data.Dataset.range(skip_batches, min(max_batches, whole))
        return self._batches(numbers, batch, None)

    def guarded(self, make_batches, skip_batches=0):
        """Yields batches; there is nothing to guard against in memory."""
        yield from make_batches(skip_batches=skip_batches)

    def explain(self, error):
        """Raises `error`, a `tf.errors.OpError`: reading is not what failed."""
        raise error

    def _shuffled(self, seed, epoch):
        return generator(seed, epoch).permutation(self.num_examples)

    def _batches(self, numbers, make_batch, batch_size):
        def batch(number):
            arrays = tf.numpy_function(
                lambda n: list(make_batch(int(n)).values()), [number], self._dtypes
            )
            for array, shape in zip(arrays, self._shapes, strict=True):
                array.set_shape((batch_size, *shape))
            return dict(zip(self._names, arrays, strict=True))

        return numbers.map(batch, num_parallel_calls=2, deterministic=True).prefetch(
            tf.data.AUTOTUNE
        )


def generator(seed, *key):
    """Returns the `np.random.Generator` of a seed and a key: an epoch, or an epoch and an example.

    Those of different seeds or keys are independent.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
