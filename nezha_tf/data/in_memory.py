"""Batches of examples that are held in memory, with the interface of `ExampleReader`."""

import tensorflow as tf

from nezha_tf.data import draws, record_stream
from nezha_tf.errors import UserError

# Of what is drawn for evaluation, which is the same each time.
EVALUATION_SEED = 0


class InMemoryReader:
    """Makes batches of a task's examples, anew for each epoch where the task draws something.

    Batches are dicts of feature name to tensor [B, ...]. Batch n of a run is a function of the
    seed and n alone, so that a run which goes on needs nothing but n. All is made in the graph:
    Python in the threads of a pipeline can hang a program that ends.
    """

    corrupt_records = 0  # Each example was looked at when it was read.

    def __init__(self, num_examples, make_features):
        """Args:
        num_examples: how many examples there are, at least 1.
        make_features: callable (index, seed, epoch), all int64 scalars, the first and the last
          of them tensors -> dict of feature name to tensor of a known shape: one example's
          features. What it draws depends on these three alone: see `draws.graph_example_seed`.
        """
        if num_examples < 1:
            raise ValueError("no example")
        self.num_examples = num_examples
        self._make_features = make_features

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
        self._check_sharing(num_shards, by)
        first_epoch, rest = divmod(skip_batches * num_shards * batch_size, self.num_examples)

        def epoch(number):
            order = draws.graph_shuffled(
                tf.range(self.num_examples, dtype=tf.int64), tf.stack([seed, number])
            )
            return tf.data.Dataset.from_tensor_slices((order, tf.fill(tf.shape(order), number)))

        chosen = tf.data.Dataset.counter(first_epoch).flat_map(epoch).skip(rest)
        chosen = chosen.batch(batch_size, drop_remainder=True).shard(num_shards, shard).unbatch()
        batches = self._examples(chosen, seed).batch(batch_size, drop_remainder=True)
        return record_stream.endless(batches).prefetch(tf.data.AUTOTUNE)

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns at most `max_batches` batches in the examples' order; the last may be short.

        Args:
          batch_size: B.
          max_batches: bound on the batches, with those that are left out.
          skip_batches: batches to leave out at the start.
        """
        first = min(skip_batches * batch_size, self.num_examples)
        end = min(max_batches * batch_size, self.num_examples)
        chosen = tf.data.Dataset.range(first, end).map(lambda index: (index, tf.zeros_like(index)))
        batches = self._examples(chosen, EVALUATION_SEED).batch(batch_size)
        return batches.prefetch(tf.data.AUTOTUNE)

    def guarded(self, make_batches, skip_batches=0):
        """Yields batches; there is nothing to guard against in memory."""
        yield from make_batches(skip_batches=skip_batches)

    def explain(self, error):
        """Raises `error`, a `tf.errors.OpError`: reading is not what failed."""
        raise error

    def _check_sharing(self, num_shards, by):
        if by == "file" and num_shards > 1:
            raise UserError(
                "--input_sharding=file is for TFRecords; these examples are held in memory, so "
                "pass --input_sharding=element"
            )

    def _examples(self, chosen, seed):
        return chosen.map(
            lambda index, epoch: self._make_features(index, seed, epoch),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
