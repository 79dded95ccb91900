"""TFRecords to batches, shuffled, interleaved, parsed in batches and prefetched."""

import tensorflow as tf

from nezha_tf.data import schema
from nezha_tf.errors import UserError, first_line

SHUFFLE_BUFFER = 10_000
FILES_AT_ONCE = 8


class ExampleReader:
    """Reads the examples of a set of files in the feature schema.

    Batches are dicts of feature name to int32 or float32 tensor: [B, T], [B, P] or [B, 1].
    """

    def __init__(self, files, lengths, limits):
        """Checks the first record of each file.

        Args:
          files: TFRecord files.
          lengths: the `schema.Lengths` of every example.
          limits: the `schema.Limits` of the model that reads them.

        Raises:
          UserError: a file that does not begin with a fitting record.
        """
        self.files = list(files)
        self.lengths = lengths
        self.limits = limits
        for path in self.files:
            self._check(path, first_only=True)

    def training_batches(self, batch_size, seed, skip_batches=0):
        """Returns endless batches in a shuffled order that the seed fixes.

        Args:
          batch_size: B; every batch is full.
          seed: of the order of files and of examples, which is another in each epoch.
          skip_batches: batches to leave out at the start, where a run goes on.
        """
        records = tf.data.Dataset.from_tensor_slices(self.files)
        records = records.shuffle(len(self.files), seed=seed)
        records = records.interleave(
            tf.data.TFRecordDataset,
            cycle_length=min(FILES_AT_ONCE, len(self.files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        records = records.shuffle(SHUFFLE_BUFFER, seed=seed).repeat()
        return self._parsed(records.batch(batch_size, drop_remainder=True).skip(skip_batches))

    def evaluation_batches(self, batch_size, max_batches):
        """Returns at most `max_batches` batches in the files' order; the last may be short."""
        records = tf.data.TFRecordDataset(self.files)
        return self._parsed(records.batch(batch_size).take(max_batches))

    def guarded(self, batches):
        """Yields batches; a failing pipeline becomes a `UserError` that names file and record."""
        iterator = iter(batches)
        while True:
            try:
                batch = next(iterator)
            except StopIteration:
                return
            except tf.errors.OpError as error:
                for path in self.files:
                    self._check(path)
                raise UserError(
                    f"reading {', '.join(self.files)} failed: {first_line(error)}"
                ) from error
            yield batch

    def _parsed(self, batched_records):
        parsed = batched_records.map(self._parse, num_parallel_calls=tf.data.AUTOTUNE)
        return parsed.prefetch(tf.data.AUTOTUNE)

    def _parse(self, records):
        batch = tf.io.parse_example(records, schema.parsing_spec(self.lengths))
        for name, values in batch.items():
            if values.dtype == tf.int64:
                # A GPU reads past a table without a word, so the ids are checked here.
                bound = tf.constant(self.limits.of(name, self.lengths), tf.int64)
                in_range = tf.reduce_all((values >= 0) & (values < bound))
                with tf.control_dependencies([tf.debugging.Assert(in_range, [name])]):
                    batch[name] = tf.cast(values, tf.int32)
        return batch

    def _check(self, path, first_only=False):
        """Raises a `UserError` for the first faulty record of a file, if there is one."""
        number = 0
        try:
            for number, record in enumerate(tf.data.TFRecordDataset(path), start=1):
                fault = schema.fault_of(record.numpy(), self.lengths, self.limits)
                if fault:
                    raise UserError(f"{path}, record {number}: {fault}")
                if first_only:
                    return
        except tf.errors.DataLossError as error:
            raise UserError(
                f"{path}, record {number + 1}: truncated, damaged or no TFRecord; make the file "
                "again"
            ) from error
        except tf.errors.OpError as error:
            raise UserError(f"cannot read {path}: {first_line(error)}") from error
        if not number:
            raise UserError(f"{path} holds no record; make the file again")
