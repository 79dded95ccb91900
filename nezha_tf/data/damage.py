"""Where TFRecord files are damaged, and how much of them can be read all the same.

Past a damaged record reading goes on at the next frame; past a damaged length, or a cut, nothing
tells where a next frame would begin.
"""

import os
from typing import NamedTuple

import tensorflow as tf

from nezha_tf import console
from nezha_tf.data.framing import FRAME_BYTES, HEADER, masked_crc
from nezha_tf.errors import UserError, first_line

READ_BUFFER_BYTES = 256 * 1024
BATCH = 1024


class Stretch(NamedTuple):
    """Undamaged records that follow one another: where they begin and how many they are."""

    offset: int
    records: int


class Damage(NamedTuple):
    """One damaged record, numbered from 1, and the bytes that are lost with it."""

    path: str
    record: int
    lost_bytes: int = 0

    @property
    def place(self):
        """File and record, for a message."""
        return f"{self.path}, record {self.record}"

    def __str__(self):
        rest = f" and the rest ({self.lost_bytes:,} bytes)" if self.lost_bytes else ""
        return self.place + rest


class Survey(NamedTuple):
    """What a file holds: its undamaged stretches and its damage, both in the file's order."""

    stretches: list
    damage: list

    @property
    def records(self):
        """How many undamaged records there are."""
        return sum(stretch.records for stretch in self.stretches)


def survey(paths):
    """Reads files from end to end.

    Args:
      paths: TFRecord files.

    Returns:
      Dict of path to `Survey`.

    Raises:
      UserError: a file cannot be read.
    """
    counts = tf.data.Dataset.from_tensor_slices(paths)
    counts = iter(counts.map(_count, num_parallel_calls=os.cpu_count(), deterministic=True))
    surveys = {}
    for path in console.progress(paths, desc="reading through", unit="file"):
        try:
            records, end = (int(value) for value in next(counts))
            # A header that is cut looks like the end of the file to tensorflow.
            whole = end == tf.io.gfile.stat(path).length
        except tf.errors.OpError:
            whole = False
        surveys[path] = Survey([Stretch(0, records)], []) if whole else _survey_damaged(path)
    return surveys


def raw_records(path, offset):
    """Returns a file's records from a byte on (both are tensors), for use in a flat_map.

    Elsewhere it fails: TensorFlow cannot serialize a TFRecordDatasetV2 with an offset, as
    `reduce` and iterators do with all that is outside a function.
    """
    variant = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path],
        compression_type="",
        buffer_size=READ_BUFFER_BYTES,
        byte_offsets=[offset],
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string))


def _records_from(path, offset):
    start = tf.data.Dataset.from_tensors((path, tf.constant(offset, tf.int64)))
    return start.flat_map(raw_records)


def _count(path):
    """Returns how many records there are in a file without damage and where they end: tensors."""

    def add(total, records):
        lengths = tf.cast(tf.strings.length(records), tf.int64)
        return total + tf.stack([tf.size(lengths, tf.int64), tf.reduce_sum(lengths + FRAME_BYTES)])

    batches = tf.data.TFRecordDataset(path).batch(BATCH)
    return batches.reduce(tf.zeros([2], tf.int64), add)


def _survey_damaged(path):
    stretches, damage, number, end = [], [], 0, 0
    try:
        size = tf.io.gfile.stat(path).length
        while end is not None and end < size:
            offset = end
            records, end = _undamaged(path, offset)
            stretches += [Stretch(offset, records)] * (records > 0)
            number += records + 1
            if end < size:
                begin, end = end, _end_of_frame(path, end, size)
                damage.append(Damage(path, number, 0 if end else size - begin))
    except tf.errors.OpError as error:
        raise UserError(f"cannot read {path}: {first_line(error)}") from error
    return Survey(stretches, damage)


def _undamaged(path, offset):
    """Returns how many undamaged records follow one another from a byte on, and where they end."""
    records, end = 0, offset
    for batch_size in (BATCH, 1):  # one by one where a batch holds a damaged record
        try:
            for batch in _records_from(path, end).batch(batch_size):
                records += len(batch)
                end += FRAME_BYTES * len(batch) + int(tf.reduce_sum(tf.strings.length(batch)))
            break
        except tf.errors.DataLossError:
            continue
    return records, end


def _end_of_frame(path, offset, size):
    """Returns where the frame that begins at `offset` ends, or None if that cannot be known."""
    with tf.io.gfile.GFile(path, "rb") as file:
        file.seek(offset)
        header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length, crc = HEADER.unpack(header)
    end = offset + FRAME_BYTES + length
    return end if end <= size and crc == masked_crc(header[:8]) else None
