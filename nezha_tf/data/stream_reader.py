"""Reads records as streams: a row of a batch goes on where this row of the last batch ended."""

import functools

import numpy as np
import tensorflow as tf

from nezha_tf.data import record_stream
from nezha_tf.data.framing import read_frames
from nezha_tf.data.reader import ExampleReader
from nezha_tf.data.schema import Feature
from nezha_tf.util.errors import UserError

# 1 where a stream begins, so that nothing comes before the example; else 0.
STREAM_STARTS = Feature("stream_starts", np.int64, 1)


class StreamReader(ExampleReader):
    """An `ExampleReader` of records in the order of the text, for models with a memory.

    All records, in the files' order, are one text. It is cut into B streams of equal length, and
    batch n has the record n of each stream (`get_lm_corpus` of transformer-xl does the same with
    tokens). What does not fill the streams is left out. The order is the same in every epoch.
    Batches also have `stream_starts`, int32 [B, 1].
    """

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns endless batches, in an order that ignores `seed`; see `ExampleReader`.

        Raises:
          UserError: there are several pipelines, or fewer records than streams.
        """
        if num_shards > 1:
            raise UserError("streams of text cannot be shared among workers; use one worker")
        streams = self._streams(batch_size)
        records = streams.records(skip_batches % streams.length, repeat=True)
        numbered = records.enumerate(skip_batches * batch_size)
        batches = self._in_streams(numbered, batch_size, streams.length, f"{seed}")
        return record_stream.prefetched(record_stream.endless(batches))

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns at most `max_batches` batches; see `ExampleReader.evaluation_batches`."""
        streams = self._streams(batch_size)
        records = streams.records(skip_batches).enumerate(skip_batches * batch_size)
        batches = self._in_streams(records, batch_size, streams.length, "evaluation")
        return record_stream.prefetched(batches.take(max(0, max_batches - skip_batches)))

    def _in_streams(self, numbered, batch_size, length, seed):
        def with_starts(numbers, batch):
            is_start = (numbers // batch_size) % length == 0
            return {**batch, STREAM_STARTS.name: tf.cast(is_start, tf.int32)[:, None]}

        numbered = numbered.batch(batch_size, drop_remainder=True)
        return self._changed(numbered, seed, with_starts)

    def _streams(self, count):
        """Returns the `_Streams` of the records."""
        total = sum(map(len, self._places))
        if total < count:
            raise UserError(
                f"{total} records cannot fill {count} streams; lower the batch size, or make more "
                "examples"
            )
        return _Streams(self.files, self._places, count, total // count)

    @functools.cached_property
    def _places(self):
        return [_offsets(path) for path in self.files]


class _Streams:
    """`count` streams of `length` records; `places` has the byte of each record of each file."""

    def __init__(self, files, places, count, length):
        self.length = length
        self._files = tf.constant([str(file) for file in files])
        self._count = count
        self._file_of = np.repeat(np.arange(len(files)), [len(part) for part in places])
        self._place_of = np.concatenate(places)
        # The number of records from each one to the end of its file.
        self._left_of = np.concatenate([np.arange(len(part), 0, -1) for part in places])

    def records(self, first, repeat=False):
        """Returns a dataset of the records of all streams in turn, from the `first` of each on.

        With `repeat`, it goes on with all records again, without end.
        """
        # Only inside a function can TensorFlow handle a dataset of a part of a file.
        passes = tf.data.Dataset.from_tensors(self._tables(first))
        if repeat:
            again = tf.data.Dataset.from_tensors(self._tables(0)).repeat()
            passes = passes.concatenate(again)
        return passes.flat_map(record_stream.traced_as_is(self._in_turn))

    def _in_turn(self, ends, table):
        def read(index):
            # tf.unstack would make TensorFlow 2.21 crash here.
            part = table[index]
            return record_stream.raw_records(self._files[part[0]], part[1]).take(part[2])

        def stream(index):
            return tf.data.Dataset.range(ends[index], ends[index + 1]).flat_map(read)

        return tf.data.Dataset.range(self._count).interleave(
            stream, cycle_length=self._count, block_length=1
        )

    def _tables(self, first):
        """Returns (int64 [B + 1], int64 [n, 3]): rows of each stream, parts of files."""
        parts = [self._parts(stream * self.length + first) for stream in range(self._count)]
        ends = tf.constant(np.cumsum([0, *map(len, parts)]), tf.int64)
        return ends, tf.ensure_shape(tf.constant(np.concatenate(parts), tf.int64), (None, 3))

    def _parts(self, begin):
        """Returns the parts of files that a stream reads, int64 [n, 3]: file, byte, records."""
        end, parts = (begin // self.length + 1) * self.length, [np.zeros((0, 3), np.int64)]
        while begin < end:
            count = min(int(self._left_of[begin]), end - begin)
            parts.append([[self._file_of[begin], self._place_of[begin], count]])
            begin += count
        return np.concatenate(parts)


def _offsets(path):
    """Returns the byte at which each record of a file begins, int64 [n].

    Raises:
      UserError: a record is damaged, or the file cannot be read.
    """
    sizes = [0]
    for number, frame, fault in read_frames(path):
        if fault:
            raise UserError(
                f"{path}, record {number} is damaged, and a stream cannot leave it out; make the "
                "file again"
            )
        sizes.append(len(frame))
    return np.cumsum(sizes[:-1], dtype=np.int64)
