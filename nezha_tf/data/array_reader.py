"""Batches of examples of different lengths, padded to a little more than the longest one."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, record_stream
from nezha_tf.data.in_memory import InMemoryReader

# The examples of this many batches are sorted by length together.
BATCHES_SORTED = 32


class ArrayReader(InMemoryReader):
    """Reads arrays in memory, in batches of examples of similar lengths.

    Batches are dicts of feature name to tensor: [B, T], padded with zeros, for features with one
    value for each token; [B, ...] for the others. `input_mask` (int32 [B, T]) and `example_index`
    (int32 [B]) are added. T is one of a few lengths, so that a step is compiled only a few times.

    If each example has C sequences (the choices of a question), features with one value for each
    token, and `input_mask`, are [B, C, T].
    """

    def __init__(self, arrays, max_seq_length, bucket_by_length=True):
        """Args:
          arrays: dict of feature name to the values of all examples. Either a list with an array
            [n] for each example of n tokens, or with C such arrays (or one array [C, n]); or one
            array [examples, ...]. `input_ids` is one of the lists.
          max_seq_length: number of tokens of the longest allowed sequence.
          bucket_by_length: whether a batch is padded to the bucket of its longest example; if
            False, all batches are padded to `max_seq_length`.

        Raises:
          ValueError: the examples have different numbers of sequences.
        """
        self._choices = _choices(arrays["input_ids"])
        lengths = np.array([len(ids) for ids in self._sequences(arrays["input_ids"])], np.int64)
        lengths = lengths.reshape(len(arrays["input_ids"]), -1)
        super().__init__(len(lengths), make_features=None)
        # An example is as long as its longest sequence.
        self._lengths = lengths.max(axis=1)
        buckets = bucket_lengths(max_seq_length) if bucket_by_length else [max_seq_length]
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
        """Returns endless batches; see `InMemoryReader.training_batches`.

        Unlike there, an epoch ends with a whole batch, which is filled up with examples from the
        start of the same epoch's order.
        """
        self._check_sharing(num_shards, by)
        whole = batch_size * num_shards
        per_epoch = self.batches_per_epoch(whole)
        first_epoch, rest = divmod(skip_batches, per_epoch)

        @record_stream.traced_as_is
        def epoch(number):
            mine = self._shuffled(seed, number, per_epoch, whole)
            return tf.data.Dataset.from_tensor_slices(
                mine[:, shard * batch_size : (shard + 1) * batch_size]
            )

        chosen = tf.data.Dataset.counter(first_epoch).flat_map(epoch).skip(rest)
        batches = chosen.map(self._gathered, num_parallel_calls=tf.data.AUTOTUNE)
        return record_stream.prefetched(record_stream.endless(batches))

    def evaluation_batches(self, batch_size, max_batches=None, skip_batches=0):
        """Returns the examples, or the first of them, in batches sorted by rising length.

        Args:
          batch_size: B; the last batch may be smaller.
          max_batches: bound on the batches, skipped ones included; None: all examples.
          skip_batches: batches to leave out at the start.
        """
        count = self.num_examples
        count = min(count, (max_batches or count) * batch_size)
        order = np.argsort(self._lengths[:count], kind="stable").astype(np.int64)
        chosen = tf.data.Dataset.from_tensor_slices(order[skip_batches * batch_size :])
        batches = chosen.batch(batch_size).map(self._gathered, num_parallel_calls=2)
        return record_stream.prefetched(batches)

    def _shuffled(self, seed, epoch, per_epoch, batch_size):
        """Returns an epoch's example indices, int64 [batches, batch_size].

        They depend on seed and epoch only. The examples are shuffled; then the examples of
        `BATCHES_SORTED` batches at a time are sorted by bucket; then the batches are shuffled.
        """
        seeds = draws.graph_seeds(tf.stack([seed, epoch]), 2)
        order = draws.graph_shuffled(tf.range(self.num_examples, dtype=tf.int64), seeds[0])
        place = tf.range(per_epoch * batch_size, dtype=tf.int64)
        order = tf.gather(order, place % self.num_examples)
        window = place // (BATCHES_SORTED * batch_size)
        key = window * len(self._buckets) + tf.gather(self._bucket_of, order)
        order = tf.gather(order, tf.argsort(key, stable=True))
        batches = tf.reshape(order, (per_epoch, batch_size))
        return draws.graph_shuffled(batches, seeds[1])

    def _sequences(self, values):
        """Returns a list of arrays [n]; the sequences of one example follow one another."""
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
            batch[name] = tf.ensure_shape(values, (None, *inner, static))
        batch["example_index"] = tf.cast(indices, tf.int32)
        return batch


def bucket_lengths(max_seq_length):
    """Returns the lengths of the buckets: 32, 64, 96, 128, 192, 256, 384 ..., `max_seq_length`."""
    lengths = [32, 64, 96, 128]
    while lengths[-1] < max_seq_length:
        lengths += [lengths[-1] * 3 // 2, lengths[-1] * 2]
    return [length for length in lengths if length < max_seq_length] + [max_seq_length]


def _choices(input_ids):
    """Returns C, the number of sequences of each example; None: examples are single sequences."""
    if not len(input_ids) or np.ndim(input_ids[0][0]) == 0:
        return None
    numbers = sorted({len(example) for example in input_ids})
    if len(numbers) > 1:
        raise ValueError(f"some examples have {numbers[0]} sequences, others {numbers[-1]}")
    return numbers[0]


def _ragged(arrays):
    splits = np.cumsum([0, *map(len, arrays)])
    return tf.RaggedTensor.from_row_splits(np.concatenate(arrays), splits)
