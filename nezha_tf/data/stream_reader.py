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
        batches = self._batches(batch_size, f"{seed}", skip_batches, repeat=True)
        return record_stream.prefetched(record_stream.endless(batches))

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns at most `max_batches` batches; see `ExampleReader.evaluation_batches`."""
        batches = self._batches(batch_size, "evaluation", skip_batches)
        return record_stream.prefetched(batches.take(max(0, max_batches - skip_batches)))

    def _batches(self, count, seed, skip_batches, repeat=False):
        """Returns batches of `count` streams; with `repeat`, again and again without end."""
        length = len(self._index) // count
        if not length:
            raise UserError(
                f"{len(self._index)} records cannot fill {count} streams; lower the batch size, "
                "or make more examples"
            )
        first = skip_batches % length if repeat else skip_batches
        passes = tf.data.Dataset.from_tensors(self._tables(count, length, first))
        if repeat:
            again = tf.data.Dataset.from_tensors(self._tables(count, length, 0)).repeat()
            passes = passes.concatenate(again)
        # Only inside a function can TensorFlow handle a dataset of a part of a file.
        records = passes.flat_map(record_stream.traced_as_is(self._in_turn))

        def with_starts(batch, numbers, _):
            is_start = (numbers // count) % length == 0
            return {**batch, STREAM_STARTS.name: tf.cast(is_start, tf.int32)[:, None]}

        numbered = records.enumerate(skip_batches * count).batch(count, drop_remainder=True)
        return self._changed(numbered, seed, [with_starts])

    @functools.cached_property
    def _index(self):
        """Of each record: its file, first byte and the records left in the file, int64 [n, 3]."""
        rows = [np.zeros((0, 3), np.int64)]
        for number, path in enumerate(self.files):
            offsets = _offsets(path)
            left = np.arange(len(offsets), 0, -1)
            rows.append(np.stack([np.full_like(offsets, number), offsets, left], axis=1))
        return np.concatenate(rows)

    def _tables(self, count, length, first):
        """Returns where the records are, of all streams from the `first` of each on.

        That is (int64 [B + 1]: the rows of each stream, int64 [n, 3]: file, byte, records).
        """
        ends, rows = [0], [np.zeros((0, 3), np.int64)]
        for stream in range(count):
            begin, end = stream * length + first, (stream + 1) * length
            while begin < end:
                file, offset, left = self._index[begin]
                rows.append([[file, offset, min(left, end - begin)]])
                begin += left
            ends.append(len(rows) - 1)
        table = tf.ensure_shape(tf.constant(np.concatenate(rows), tf.int64), (None, 3))
        return tf.constant(ends, tf.int64), table

    def _in_turn(self, ends, table):
        files = tf.constant([str(file) for file in self.files])

        def read(index):
            # tf.unstack would make TensorFlow 2.21 crash here.
            part = table[index]
            return record_stream.raw_records(files[part[0]], part[1]).take(part[2])

        def stream(index):
            return tf.data.Dataset.range(ends[index], ends[index + 1]).flat_map(read)

        count = ends.shape[0] - 1
        return tf.data.Dataset.range(count).interleave(stream, cycle_length=count, block_length=1)


def _offsets(path):
    """Returns the byte at which each record of a file begins, int64 [n]; none may be damaged."""
    sizes = [0]
    for number, frame, fault in read_frames(path):
        if fault:
            raise UserError(
                f"{path}, record {number} is damaged, and a stream cannot leave it out; make the "
                "file again"
            )
        sizes.append(len(frame))
    return np.cumsum(sizes[:-1], dtype=np.int64)
