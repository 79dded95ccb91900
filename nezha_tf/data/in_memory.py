"""Batches of examples in memory, with the interface of `ExampleReader`."""

import tensorflow as tf

from nezha_tf.data import draws, record_stream
from nezha_tf.util.errors import UserError

# A fixed seed makes every evaluation draw the same.
EVALUATION_SEED = 0


class InMemoryReader:
    """Makes batches of a task's examples; what the task draws is drawn again in each epoch.

    Batches are dicts of feature name to tensor [B, ...]. Batch n of a run depends only on the seed
    and n, so a resumed run needs nothing but n. Everything is computed in the graph, because
    Python code in a pipeline's threads can make a program hang when it ends.
    """

    corrupt_records = 0  # All examples were checked when they were read into memory.

    def __init__(self, num_examples, make_features):
        """Args:
        num_examples: number of examples, at least 1.
        make_features: function (index, seed, epoch) that returns one example's features, a dict
          of feature name to tensor of a known shape. `index` and `epoch` are int64 scalar
          tensors, `seed` is an int. Random draws may depend only on these three: see
          `draws.graph_example_seed`.
        """
        if num_examples < 1:
            raise ValueError("no example")
        self.num_examples = num_examples
        self._make_features = make_features

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns an endless dataset of batches, in a shuffled order that the seed determines.

        Args:
          batch_size: B, the number of examples in each batch of this pipeline.
          seed: int; seed of the order, which differs between epochs, and of the features' draws.
          skip_batches: batches to leave out at the start, when a run is resumed.
          num_shards: number of pipelines that share the examples; of each `num_shards * B`
            consecutive examples, each pipeline makes B.
          shard: index of this pipeline, from 0.
          by: must be "element" if there are several pipelines, because there are no files here.

        Raises:
          UserError: `by` is "file" and there are several pipelines.
        """
        self._check_sharing(num_shards, by)
        first_epoch, rest = divmod(skip_batches * num_shards * batch_size, self.num_examples)

        @record_stream.traced_as_is
        def epoch(number):
            order = draws.graph_shuffled(
                tf.range(self.num_examples, dtype=tf.int64), tf.stack([seed, number])
            )
            return tf.data.Dataset.from_tensor_slices((order, tf.fill(tf.shape(order), number)))

        chosen = tf.data.Dataset.counter(first_epoch).flat_map(epoch).skip(rest)
        chosen = chosen.batch(batch_size, drop_remainder=True).shard(num_shards, shard).unbatch()
        batches = self._examples(chosen, seed).batch(batch_size, drop_remainder=True)
        return record_stream.prefetched(record_stream.endless(batches))

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns at most `max_batches` batches in the examples' order; the last may be smaller.

        Args:
          batch_size: B.
          max_batches: bound on the batches, skipped ones included.
          skip_batches: batches to leave out at the start.
        """
        first = min(skip_batches * batch_size, self.num_examples)
        end = min(max_batches * batch_size, self.num_examples)
        indices = tf.data.Dataset.range(first, end)
        chosen = tf.data.Dataset.zip(
            indices, tf.data.Dataset.from_tensors(tf.constant(0, tf.int64)).repeat()
        )
        batches = self._examples(chosen, EVALUATION_SEED).batch(batch_size)
        return record_stream.prefetched(batches)

    def guarded(self, make_batches, skip_batches=0):
        """Yields batches; unlike files, examples in memory cannot be damaged."""
        yield from make_batches(skip_batches=skip_batches)

    def explain(self, error):
        """Raises `error`, one of `reader.FAILURES`, because its cause is not reading."""
        raise error

    def _check_sharing(self, num_shards, by):
        if by == "file" and num_shards > 1:
            raise UserError(
                "--input_sharding=file needs TFRecord files, but these examples are in memory; "
                "pass --input_sharding=element"
            )

    def _examples(self, chosen, seed):
        @record_stream.traced_as_is
        def features(index, epoch):
            return self._make_features(index, seed, epoch)

        return chosen.map(features, num_parallel_calls=tf.data.AUTOTUNE)
