"""Instances to TFRecords, with a count of what was written."""

import contextlib
import dataclasses

import tensorflow as tf

from nezha_tf import console, files
from nezha_tf.data import schema
from nezha_tf.errors import UserError, first_line


@dataclasses.dataclass
class WriteStatistics:
    """Totals over the instances written; pieces do not count [CLS] and [SEP]."""

    instances: int = 0
    random_next: int = 0
    pieces: int = 0
    length: int = 0
    capacity: int = 0
    masked: int = 0
    replaced: int = 0
    kept: int = 0

    def add(self, instance, max_seq_length, mask_id):
        """Counts one `Instance`."""
        self.instances += 1
        self.random_next += instance.is_random_next
        self.length += len(instance.input_ids)
        self.pieces += len(instance.input_ids) - 3
        self.capacity += max_seq_length
        for position, label in zip(
            instance.masked_lm_positions, instance.masked_lm_ids, strict=True
        ):
            found = instance.input_ids[position]
            if found == mask_id:
                self.masked += 1
            elif found == label:
                self.kept += 1
            else:
                self.replaced += 1

    def rows(self):
        """Returns (name, value) rows for a table."""
        return [
            ("instances", f"{self.instances:,}"),
            ("random next sentence", f"{self.random_next / self.instances:.1%}"),
            ("masked characters", f"{self.masked / self.pieces:.2%}"),
            ("randomly replaced characters", f"{self.replaced / self.pieces:.2%}"),
            ("predicted but kept characters", f"{self.kept / self.pieces:.2%}"),
            ("mean length", f"{self.length / self.instances:.1f}"),
            ("padding", f"{1 - self.length / self.capacity:.1%}"),
        ]


def padded(instance, lengths):
    """Returns the feature values of an instance, padded with zeros to the lengths."""

    def pad(values, length):
        return [*values, *[0] * (length - len(values))]

    length, predictions = lengths
    return {
        "input_ids": pad(instance.input_ids, length),
        "input_mask": pad([1] * len(instance.input_ids), length),
        "segment_ids": pad(instance.segment_ids, length),
        "masked_lm_positions": pad(instance.masked_lm_positions, predictions),
        "masked_lm_ids": pad(instance.masked_lm_ids, predictions),
        "masked_lm_weights": pad([1.0] * len(instance.masked_lm_ids), predictions),
        "next_sentence_labels": [int(instance.is_random_next)],
    }


def write_sets(sets, lengths, mask_id):
    """Writes sets of instances, each to its TFRecord files in turn, as the original does.

    All files take their final names together, when all are whole.

    Args:
      sets: list of (list of `Instance`, list of paths).
      lengths: the `schema.Lengths` to pad to.
      mask_id: id of [MASK], for the statistics.

    Returns:
      A `WriteStatistics` for each set.

    Raises:
      UserError: the files cannot be written (no room, no permission).
    """
    paths = [path for _, chosen in sets for path in chosen]
    found = []
    try:
        with contextlib.ExitStack() as renames:
            temporary = {path: renames.enter_context(files.whole_file(path)) for path in paths}
            for instances, chosen in sets:
                outputs = [temporary[path] for path in chosen]
                found.append(_write(instances, outputs, lengths, mask_id))
    except (tf.errors.OpError, OSError) as error:
        raise UserError(f"cannot write {', '.join(paths)}: {first_line(error)}") from error
    return found


def _write(instances, paths, lengths, mask_id):
    statistics = WriteStatistics()
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
        for index, instance in enumerate(console.progress(instances, desc="writing", unit="ex")):
            record = schema.encode(padded(instance, lengths))
            writers[index % len(writers)].write(record)
            statistics.add(instance, lengths.max_seq_length, mask_id)
    return statistics
