"""Reads TFRecord files into batches: sharded, shuffled, parsed in batches and prefetched."""

import re
import sys

import tensorflow as tf

from nezha_tf.data import draws, record_stream, schema
from nezha_tf.data.damage import RecordFiles
from nezha_tf.data.framing import has_lying_length, read_frames, record_of
from nezha_tf.data.record_stream import untuned
from nezha_tf.data.shares import Shares
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError, first_line

CHECKED_AT_ONCE = 256
# At most this many of the known files are looked at before the first step.
KNOWN_CHECKED = 16
# In TensorFlow's messages, failed reading shows as an op whose name ends in GetNext (in a graph or
# eager), or as the iterator in which a function of the pipeline failed.
FAILED_READ = re.compile(r"(\{\{node |\[Op:)[^}\]]*GetNext|with iterator: Iterator::")
# TensorFlow quotes a record that is no example. If it is not UTF-8, no OpError is made of the
# message, but a UnicodeDecodeError that has its bytes.
UNFIT = (tf.errors.InvalidArgumentError, UnicodeDecodeError)
FAILURES = (tf.errors.OpError, UnicodeDecodeError)


class ExampleReader:
    """Reads the examples of TFRecord files by a feature schema, and applies transforms to them.

    Batches are dicts of feature name to int32 or float32 tensor: [B, T], [B, P] or [B, 1].

    Damage is found when reading fails, or when the records are counted. Up to
    `max_corrupt_records` damaged records are skipped. The order of the other records is then the
    same as if the damaged ones had never been in the files, whenever they are found.
    """

    def __init__(
        self,
        files,
        lengths,
        limits,
        max_corrupt_records=0,
        features=schema.FEATURES,
        transforms=(),
        counts=dict,
        known=(),
        parts=(),
    ):
        """Checks lengths and the first record of each file; of the known files, of a few of them.

        Args:
          files: TFRecord files.
          lengths, limits: `schema.Lengths` of every record, `schema.Limits` of the model.
          max_corrupt_records: most damaged records to skip, in all files together. The lost end
            of a file, after a damaged length or a truncation, counts as one.
          features: the `schema.Feature`s to read from each record.
          transforms: the `Transform`s to apply to each batch, in this order.
          counts: function that returns a dict of files to numbers of records, of those that need
            not be counted; it is called when the numbers are needed.
          known: files that are known to have records of one kind.
          parts: list of (files, weight, a `Fraction`), which share the files and the examples of
            `training_batches`; by default the files are one part.

        Raises:
          UserError: a first record does not fit the schema or the limits, there are too many
            damaged ones among those that were found, or the weights do not fit `Shares`.
          ValueError: a transform reads a feature that nothing before it gives.
        """
        self.files = list(files)
        self.lengths = lengths
        self.limits = limits
        self._features = tuple(features)
        self._transforms = tuple(transforms)
        _check_that_they_fit(self._features, self._transforms)
        self._at_once = max((transform.at_once for transform in self._transforms), default=1)
        self._record_files = RecordFiles(self.files, max_corrupt_records)
        self._counts = counts
        self._parts = [files for files, _ in parts]
        self._shares = Shares([weight for _, weight in parts]) if parts else None
        of_one_kind = [path for path in self.files if path in known]
        chosen = of_one_kind[:: 1 + len(of_one_kind) // KNOWN_CHECKED]
        for path in self.files:
            if path in chosen or path not in known:
                self._check_first(path)

    @property
    def corrupt_records(self):
        """The number of damaged records that have been found and skipped."""
        return self._record_files.corrupt_records

    def training_batches(
        self, batch_size, seed, skip_batches=0, num_shards=1, shard=0, by="element"
    ):
        """Returns an endless dataset of batches, in a shuffled order that the seed determines.

        Parts take turns in giving an example. Each has epochs of its own, so that a small part is
        read more often.

        The records are counted first when a run is resumed, unless the numbers are known, and when
        several pipelines may skip damaged records: they must agree on the order from the start.

        Args:
          batch_size: B, the number of examples in each batch of this pipeline.
          seed: seed of the order of files and examples; the order differs between epochs.
          skip_batches: batches to leave out at the start, when a run is resumed.
          num_shards, shard: number of pipelines that share the files, and this one's index from 0.
          by: "element": each pipeline reads all files and keeps B of each `num_shards * B`
            consecutive records; "file": each pipeline reads its own files, of each part.

        Raises:
          UserError: a part has fewer files than there are pipelines, or counting the records finds
            too many damaged ones.
        """
        if by not in ("element", "file"):
            raise ValueError(f"by is {by!r}, not 'element' or 'file'")
        parts, first = self._parts or [self.files], skip_batches * batch_size
        if by == "element":
            first *= num_shards
        else:
            parts = [_files_of_shard(files, num_shards, shard) for files in parts]
        is_counted = skip_batches or (num_shards > 1 and self._record_files.max_corrupt_records)
        records = self._shuffled(parts, seed, first, is_counted)
        numbered = records.enumerate(first)
        batches = numbered.batch(batch_size, drop_remainder=True)
        if by == "element":
            batches = batches.shard(num_shards, shard)
        seed = f"{seed}/{shard}" if by == "file" else f"{seed}"
        changed = self._changed_together if self._at_once > batch_size else self._changed
        batches = changed(batches, seed)
        return record_stream.prefetched(record_stream.endless(batches))

    def _shuffled(self, parts, seed, first, is_counted):
        """Returns the endless records from number `first` on, of parts (lists of files) in turn."""

        def of_files(files, seed, first):
            first_epoch, rest = divmod(first, self._count(files)) if is_counted else (0, 0)
            stretches = self._record_files.stretches(files)
            return record_stream.shuffled_epochs(stretches, seed, first_epoch).skip(rest)

        if not self._shares:
            return of_files(*parts, seed, first)
        streams = [
            # With one seed, parts of the same size would be read in the same order.
            of_files(files, draws.generator("part", seed, number).getrandbits(63), given)
            for number, (files, given) in enumerate(
                zip(parts, self._shares.given(first), strict=True)
            )
        ]
        return record_stream.in_turns(streams, self._shares.turns, first)

    def _count(self, files):
        # Where damage may be skipped, only reading tells how many records are left.
        if not self._record_files.max_corrupt_records:
            counts = self._counts()
            if counts.keys() >= set(files):
                return sum(counts[path] for path in files)
        count, message = self._record_files.count(files)
        _warn(message)
        return count

    def evaluation_batches(self, batch_size, max_batches, skip_batches=0):
        """Returns batches in the files' order; the last may be smaller than B.

        Args:
          batch_size: B.
          max_batches: bound on the batches, skipped ones included.
          skip_batches: batches to leave out at the start.
        """
        records = record_stream.in_order(self._record_files.stretches(self.files)).enumerate()
        batches = records.batch(batch_size).take(max_batches).skip(skip_batches)
        return record_stream.prefetched(self._changed(batches, "evaluation"))

    def guarded(self, make_batches, skip_batches=0):
        """Yields the batches of `make_batches(skip_batches=)`, and goes on after damage if it may.

        Raises:
          UserError, or one of `FAILURES`: see `explain`.
        """
        while True:
            try:
                for batch in make_batches(skip_batches=skip_batches):
                    skip_batches += 1
                    yield batch
                return
            except FAILURES as error:
                _warn(self.explain(error))

    def explain(self, error):
        """Finds out why iterating over batches failed with one of `FAILURES`.

        Returns:
          One line on the damaged records that were found and are skipped from now on. The caller
          makes the batches again, with `skip_batches` set to the number of batches it has got.

        Raises:
          UserError: a file cannot be read, a record does not fit, or there are more damaged
            records than `max_corrupt_records`.
          FAILURES: `error` itself, if reading is not its cause.
        """
        if not FAILED_READ.search(_message_of(error)):
            raise error
        for path in self.files:
            _require_readable(path)
        try:
            if isinstance(error, UNFIT):
                for path in console.progress(self.files, desc="searching", unit="file"):
                    self._refuse_unfit(path)
        except tf.errors.DataLossError as damaged:
            error = damaged
        is_damage = isinstance(error, tf.errors.DataLossError)
        message = self._record_files.survey(self.files) if is_damage else ""
        if not message:
            raise UserError(
                f"reading failed ({first_line(error)}), but every file can be read now; start "
                "the run again"
            ) from error
        return message

    def _changed(self, numbered_batches, seed, last=()):
        """Parses batches of (number in the stream, record), and applies transforms and `last`."""

        @record_stream.traced_as_is
        def changed(numbers, records):
            batch = self._parse(records)
            for transform in (*self._transforms, *last):
                batch = transform(batch, numbers, seed)
            return batch

        return numbered_batches.map(changed, num_parallel_calls=tf.data.AUTOTUNE)

    def _changed_together(self, numbered_batches, seed):
        """Does the same for several batches at once; `rebatch` would take several times as long."""
        batch_size = numbered_batches.element_spec[0].shape[0]
        count = self._at_once // batch_size

        @record_stream.traced_as_is
        def flat(*parts):
            return tuple(tf.reshape(part, [-1]) for part in parts)

        @record_stream.traced_as_is
        def parted(batch):
            return {n: tf.reshape(v, (count, batch_size, v.shape[1])) for n, v in batch.items()}

        joined = numbered_batches.batch(count, drop_remainder=True).map(flat)
        return self._changed(joined, seed).map(parted).unbatch()

    @record_stream.traced_as_is
    def _parse(self, records):
        batch = tf.io.parse_example(records, schema.parsing_spec(self.lengths, self._features))
        for name, values in batch.items():
            if values.dtype == tf.int64:
                # A GPU reads beyond the end of a table without an error, so ids are checked here.
                bound = tf.constant(self.limits.of(name, self.lengths), tf.int64)
                in_range = tf.reduce_all((values >= 0) & (values < bound))
                with tf.control_dependencies([tf.debugging.Assert(in_range, [name])]):
                    batch[name] = tf.cast(values, tf.int32)
        return batch

    def _check_first(self, path):
        """Raises a `UserError` if the first undamaged record of a file does not fit.

        A length that is a lie would end the process when TensorFlow comes to it, so all are read.
        """
        records, is_damaged = [], has_lying_length(path)
        for _, frame, fault in read_frames(path):
            if not fault:
                records.append(record_of(frame))
                break
            is_damaged = True
        if is_damaged:
            _warn(self._record_files.survey([path]))
        self._refuse_unfit_among(path, records)

    def _refuse_unfit(self, path):
        """Raises a `UserError` for the first record of a file that does not fit."""
        records, fitting = record_stream.in_order(self._record_files.stretches([path])), 0
        try:
            for _ in untuned(records.batch(CHECKED_AT_ONCE).map(self._parse)):
                fitting += CHECKED_AT_ONCE
        except UNFIT:
            failed = records.skip(fitting).take(CHECKED_AT_ONCE)
            self._refuse_unfit_among(path, untuned(failed).as_numpy_iterator(), fitting)

    def _refuse_unfit_among(self, path, records, first=0):
        """Does the same for some records, after `first` undamaged ones."""
        is_empty = True
        for index, record in enumerate(records, first):
            is_empty, fault = False, self._fault_of(record)
            if fault:
                number = self._record_files.number_of(path, index)
                raise UserError(f"{path}, record {number}: {fault}")
        if is_empty:
            raise UserError(f"{path} has no record; make the file again")

    def _fault_of(self, record):
        fault = schema.fault_of(record, self.lengths, self.limits, self._features)
        faults = (transform.fault_of(record) for transform in self._transforms)
        return fault or next(filter(None, faults), None)


def _files_of_shard(files, num_shards, shard):
    if len(files) < num_shards:
        raise UserError(
            f"{len(files)} files cannot be shared among {num_shards} workers; make more files, or "
            "pass --input_sharding=element"
        )
    return files[shard::num_shards]


def _check_that_they_fit(features, transforms):
    given = {feature.name for feature in features}
    for transform in transforms:
        missing = {feature.name for feature in transform.reads} - given
        if missing:
            raise ValueError(
                f"{type(transform).__name__} reads {sorted(missing)}, which nothing before it gives"
            )
        given = {feature.name for feature in transform.gives}


def _message_of(error):
    is_raw = isinstance(error, UnicodeDecodeError)
    return error.object.decode(errors="replace") if is_raw else str(error)


def _require_readable(path):
    try:
        with storage.open_binary(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def _warn(message):
    if message:
        console.tell(message, file=sys.stderr)
