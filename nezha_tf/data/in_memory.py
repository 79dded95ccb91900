"""Batches of examples in memory, with the interface of `ExampleReader`."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, record_stream
from nezha_tf.util.errors import UserError

# A fixed seed makes every evaluation draw the same.
EVALUATION_SEED = 0
# The examples of this many batches are sorted by length together.
BATCHES_SORTED = 32


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
        make_features: function (index, seed, epoch) that returns one example's features, a dict of
          name to tensor of a known shape. `index` and `epoch` are int64 scalar tensors, `seed` is
          an int. Draws may depend on these three alone: see `draws.graph_example_seed`.
        """
        if num_examples < 1:
            raise ValueError("no example")
        self.num_examples = num_examples
        self._make_features = make_features

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns endless batches in a shuffled order; see `ExampleReader.training_batches`.

        The seed also determines what is drawn for the features.

        Raises:
          UserError: `by` is "file" and there are several pipelines: there are no files here.
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
        """Returns batches in order; see `ExampleReader.evaluation_batches`."""
        first = min(skip_batches * batch_size, self.num_examples)
        end = min(max_batches * batch_size, self.num_examples)
        indices = np.arange(first, end)
        chosen = tf.data.Dataset.from_tensor_slices((indices, np.zeros_like(indices)))
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


class ArrayReader(InMemoryReader):
    """Reads arrays in memory, in batches of examples of similar lengths.

    Batches are dicts of feature name to tensor: [B, T], padded with zeros, for features with one
    value for each token; [B, ...] for the others. `input_mask` (int32 [B, T]) and `example_index`
    (int32 [B]) are added. T is one of a few lengths, so that a step is compiled only a few times,
    or that of the longest example, for a step that takes any length.

    If each example has C sequences (the choices of a question), features with one value for each
    token, and `input_mask`, are [B, C, T].

    Attributes:
      any_length: whether batches may have any length.
    """

    def __init__(self, arrays, max_seq_length, bucket_by_length=True, any_length=False):
        """Args:
          arrays: dict of feature name to the values of all examples. Either a list with an array
            [n] for each example of n tokens, or with C such arrays (or one array [C, n]); or one
            array [examples, ...]. `input_ids` is one of the lists.
          max_seq_length: number of tokens of the longest allowed sequence.
          bucket_by_length: whether a batch is padded to the bucket of its longest example, or
            always to `max_seq_length`.
          any_length: whether each length is a bucket of its own, with `bucket_by_length`.

        Raises:
          ValueError: the examples have different numbers of sequences.
        """
        self._choices = _choices(arrays["input_ids"])
        lengths = np.array([len(ids) for ids in self._sequences(arrays["input_ids"])], np.int64)
        lengths = lengths.reshape(len(arrays["input_ids"]), -1)
        super().__init__(len(lengths), make_features=None)
        # An example is as long as its longest sequence.
        self._lengths = lengths.max(axis=1)
        self.any_length = any_length and bucket_by_length
        buckets = bucket_lengths(max_seq_length) if bucket_by_length else [max_seq_length]
        if self.any_length:
            buckets = range(1, max_seq_length + 1)
        self._buckets = np.array(buckets, np.int64)
        self._bucket_of = np.searchsorted(self._buckets, self._lengths)
        with tf.device("/cpu:0"):
            self._sequence_lengths = tf.constant(lengths)
            self._ragged = {
                name: _ragged(self._sequences(values))
                for name, values in arrays.items()
                if isinstance(values, list)
            }
            self._fixed = {n: tf.constant(v) for n, v in arrays.items() if not isinstance(v, list)}

    @property
    def mean_length(self):
        """The mean padded length of an example if each batch holds a single bucket."""
        return int(np.mean(self._buckets[self._bucket_of]))

    def batches_per_epoch(self, batch_size):
        """Returns the number of batches of an epoch; the last one is filled up."""
        return -(-self.num_examples // batch_size)

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns endless batches; see `InMemoryReader`.

        Here an epoch ends with a whole batch, filled up from the start of the epoch's order.
        """
        self._check_sharing(num_shards, by)
        whole = batch_size * num_shards
        first_epoch, rest = divmod(skip_batches, self.batches_per_epoch(whole))

        @record_stream.traced_as_is
        def epoch(number):
            return self._epoch(draws.graph_seeds(tf.stack([seed, number]), 2), whole)

        @record_stream.traced_as_is
        def own(indices):
            return tf.reshape(indices, (num_shards, -1))[shard]

        chosen = tf.data.Dataset.counter(first_epoch).flat_map(epoch).skip(rest)
        if num_shards > 1:
            chosen = chosen.map(own)
        batches = chosen.map(self._gathered, num_parallel_calls=tf.data.AUTOTUNE)
        return record_stream.prefetched(record_stream.endless(batches))

    def evaluation_batches(self, batch_size, max_batches=None, skip_batches=0):
        """Returns the examples, or those of `max_batches`, in batches sorted by rising length."""
        count = self.num_examples
        count = min(count, (max_batches or count) * batch_size)
        order = np.argsort(self._lengths[:count], kind="stable").astype(np.int64)
        chosen = tf.data.Dataset.from_tensor_slices(order[skip_batches * batch_size :])
        batches = chosen.batch(batch_size).map(self._gathered, num_parallel_calls=2)
        return record_stream.prefetched(batches)

    def _epoch(self, seeds, batch_size):
        """Returns a dataset of an epoch's batches: the indices of their examples, int64 [B].

        They depend on the two seeds only. The examples are shuffled; then the examples of
        `BATCHES_SORTED` batches at a time are sorted by bucket; then the batches are shuffled.
        """
        order = draws.graph_shuffled(tf.range(self.num_examples, dtype=tf.int64), seeds[0])
        per_epoch = self.batches_per_epoch(batch_size)
        place = tf.range(per_epoch * batch_size, dtype=tf.int64)
        order = tf.gather(order, place % self.num_examples)
        window = place // (BATCHES_SORTED * batch_size)
        key = window * len(self._buckets) + tf.gather(self._bucket_of, order)
        order = tf.gather(order, tf.argsort(key, stable=True))
        batches = tf.reshape(order, (per_epoch, batch_size))
        return tf.data.Dataset.from_tensor_slices(draws.graph_shuffled(batches, seeds[1]))

    def _sequences(self, values):
        """Returns a list of arrays [n]; those of one example follow one another."""
        if self._choices is None:
            return values
        return [sequence for example in values for sequence in example]

    @record_stream.traced_as_is
    def _gathered(self, indices):
        """Returns the batch of the examples `indices`, int64 [B]."""
        bucket = tf.reduce_max(tf.gather(self._bucket_of, indices))
        length = tf.gather(self._buckets, bucket)
        static = self._buckets[0] if len(self._buckets) == 1 else None
        count = self._choices or 1
        sequences = tf.reshape(indices[:, None] * count + tf.range(count, dtype=tf.int64), [-1])
        padded = {
            name: tf.gather(values, sequences).to_tensor(shape=tf.stack([-1, length]))
            for name, values in self._ragged.items()
        }
        lengths = tf.reshape(tf.gather(self._sequence_lengths, indices), [-1])
        padded["input_mask"] = tf.sequence_mask(lengths, length, tf.int32)
        inner = () if self._choices is None else (self._choices,)
        batch = {name: tf.gather(values, indices) for name, values in self._fixed.items()}
        for name, values in padded.items():
            values = tf.reshape(values, tf.stack([-1, *inner, length]))
            batch[name] = tf.ensure_shape(values, (indices.shape[0], *inner, static))
        batch["example_index"] = tf.cast(indices, tf.int32)
        return batch


class TokenBudgetReader(ArrayReader):
    """An `ArrayReader` whose training batches have about as many tokens, however short the texts.

    B examples of the longest bucket and twice as many of half of it have the same number of
    tokens. So a bucket's batches have B times the number of its lengths in the longest one, rounded
    down, and are of this bucket alone. A step is compiled once for each bucket.
    """

    def batches_per_epoch(self, batch_size):
        return len(self._places(batch_size))

    def _epoch(self, seeds, batch_size):
        """Examples are shuffled within their bucket; its last batch is filled up from its first."""
        order = draws.graph_shuffled(tf.range(self.num_examples, dtype=tf.int64), seeds[0])
        order = tf.gather(order, tf.argsort(tf.gather(self._bucket_of, order), stable=True))
        places = draws.graph_shuffled(tf.constant(self._places(batch_size)), seeds[1])

        @record_stream.traced_as_is
        def indices(place):
            bucket, count, first, size = tf.unstack(place)
            return tf.gather(order, bucket + (first + tf.range(size)) % count)

        return tf.data.Dataset.from_tensor_slices(places).map(indices)

    def _places(self, batch_size):
        """Returns where the batches lie among all examples sorted by bucket, int64 [batches, 4].

        A row has the place of the bucket's first example and its number of examples; and, within
        the bucket, the batch's first example and the number of its examples.
        """
        counts = np.bincount(self._bucket_of, minlength=len(self._buckets))
        places, before = [], 0
        for count, length in zip(counts, self._buckets, strict=True):
            size = batch_size * (self._buckets[-1] // length)
            places += [(before, count, first, size) for first in range(0, count, size)]
            before += count
        return np.array(places, np.int64)


def bucket_lengths(max_seq_length):
    """Returns the lengths of the buckets: 32, 64, 96, 128, 192, 256, 384 ..., `max_seq_length`."""
    lengths = [32, 64, 96, 128]
    while lengths[-1] < max_seq_length:
        lengths += [lengths[-1] * 3 // 2, lengths[-1] * 2]
    return [length for length in lengths if length < max_seq_length] + [max_seq_length]


def _choices(input_ids):
    """Returns C, the number of sequences of each example, or None: one, not in a list."""
    if not len(input_ids) or np.ndim(input_ids[0][0]) == 0:
        return None
    numbers = sorted({len(example) for example in input_ids})
    if len(numbers) > 1:
        raise ValueError(f"some examples have {numbers[0]} sequences, others {numbers[-1]}")
    return numbers[0]


def _ragged(arrays):
    splits = np.cumsum([0, *map(len, arrays)])
    return tf.RaggedTensor.from_row_splits(np.concatenate(arrays), splits)
