"""Finds damaged records in TFRecord files, and the parts of a file that can still be read.

After a damaged record, reading continues at the next frame. After a damaged length, or where the
file is truncated, the start of the next frame is unknown, so the rest of the file is lost.
"""

import os
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.data.framing import FRAME_BYTES, HEADER, frames_before_lie, masked_crc
from nezha_tf.data.untuned import untuned
from nezha_tf.util import console
from nezha_tf.util.errors import UserError, first_line

READ_BUFFER_BYTES = 256 * 1024
BATCH = 1024


class Stretch(NamedTuple):
    """A run of undamaged records: byte offset of the first, and how many (-1: all)."""

    offset: int
    records: int


class Damage(NamedTuple):
    """A damaged record, numbered from 1; `lost_bytes` if the rest of the file is lost too."""

    path: str
    record: int
    lost_bytes: int = 0

    @property
    def place(self):
        """File and record number, for messages."""
        return f"{self.path}, record {self.record}"

    def __str__(self):
        rest = f" and the rest ({self.lost_bytes:,} bytes)" if self.lost_bytes else ""
        return self.place + rest


class Survey(NamedTuple):
    """A file's undamaged `Stretch`es and its `Damage`s, two lists in the file's order."""

    stretches: list
    damage: list

    @property
    def records(self):
        """The number of undamaged records."""
        return sum(stretch.records for stretch in self.stretches)


def survey(paths):
    """Reads files completely and finds their damage.

    Args:
      paths: TFRecord files.

    Returns:
      Dict of path to `Survey`.

    Raises:
      UserError: a file cannot be read.
    """
    lying = {path for path in paths if frames_before_lie(path) >= 0}
    others = tf.constant([path for path in paths if path not in lying], tf.string)
    counts = tf.data.Dataset.from_tensor_slices(others)
    counts = counts.map(_count, num_parallel_calls=os.cpu_count(), deterministic=True)
    counts = iter(untuned(counts))
    surveys = {}
    for path in console.progress(paths, desc="reading through", unit="file"):
        if path in lying:
            surveys[path] = _survey_damaged(path)
            continue
        try:
            records, end = (int(value) for value in next(counts))
            # TensorFlow takes a truncated header for the end of the file.
            whole = end == tf.io.gfile.stat(path).length
        except tf.errors.OpError:
            whole = False
        surveys[path] = Survey([Stretch(0, records)], []) if whole else _survey_damaged(path)
    return surveys


def raw_records(path, offset):
    """Returns a dataset of a file's records from a byte offset on; both arguments are tensors.

    Use it inside a function of `flat_map` only: `reduce` and iterators serialize a dataset that is
    outside a function, and TensorFlow cannot serialize a TFRecordDatasetV2 with an offset.
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
    return start.flat_map(tf.autograph.experimental.do_not_convert(raw_records))


@tf.autograph.experimental.do_not_convert
def _count(path):
    """Returns int64 [2]: the number of records of an undamaged file, and its size in bytes."""

    def add(total, records):
        lengths = tf.cast(tf.strings.length(records), tf.int64)
        return total + tf.stack([tf.size(lengths, tf.int64), tf.reduce_sum(lengths + FRAME_BYTES)])

    batches = untuned(tf.data.TFRecordDataset(path).batch(BATCH))
    return batches.reduce(tf.zeros([2], tf.int64), add)


def _survey_damaged(path):
    stretches, damage, number, end = [], [], 0, 0
    try:
        size, is_lying = tf.io.gfile.stat(path).length, frames_before_lie(path) >= 0
        while end is not None and end < size:
            offset = end
            records, end = _undamaged(path, offset, is_lying)
            stretches += [Stretch(offset, records)] * (records > 0)
            number += records + 1
            if end < size:
                begin, end = end, _end_of_frame(path, end, size)
                damage.append(Damage(path, number, 0 if end else size - begin))
    except tf.errors.OpError as error:
        raise UserError(f"cannot read {path}: {first_line(error)}") from error
    return Survey(stretches, damage)


def _undamaged(path, offset, is_lying):
    """Returns the number of undamaged records in a run that begins at a byte, and the run's end.

    `is_lying` says whether TensorFlow must not read on to a length that is larger than the file.
    """
    records, end = 0, offset
    for batch_size in (BATCH, 1):  # singly, after a batch with a damaged record
        found = _records_from(path, end).take(frames_before_lie(path, end) if is_lying else -1)
        try:
            for batch in untuned(found.batch(batch_size)):
                records += len(batch)
                end += FRAME_BYTES * len(batch) + int(tf.reduce_sum(tf.strings.length(batch)))
            break
        except tf.errors.DataLossError:
            continue
    return records, end


def _end_of_frame(path, offset, size):
    """Returns the end of the frame that begins at `offset`, or None if it is unknown."""
    with tf.io.gfile.GFile(path, "rb") as file:
        file.seek(offset)
        header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length, crc = HEADER.unpack(header)
    end = offset + FRAME_BYTES + length
    return end if end <= size and crc == masked_crc(header[:8]) else None
