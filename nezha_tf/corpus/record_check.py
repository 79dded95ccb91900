"""Checks TFRecord files and their sets; the code of `tools/inspect_tfrecords.py --check`."""

import collections
import os
from typing import NamedTuple

import google_crc32c

from nezha_tf.corpus.packing import PACKED
from nezha_tf.corpus.provenance import fault_of_vocabulary
from nezha_tf.corpus.row_check import row_faults
from nezha_tf.corpus.shard_files import (
    example_files,
    manifest_name,
    parts_of_sets,
    read_summary,
    shards_in,
    summary_name,
)
from nezha_tf.data import schema
from nezha_tf.data.framing import read_frames, record_of
from nezha_tf.objectives.policies import UNMASKED
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, storage
from nezha_tf.util.settings import require_read

CHECKED_AT_ONCE = 512
FAULTS_SHOWN = 20
# The bound on ids if the size of the vocabulary is unknown.
ANY_VOCABULARY = 2**31


class Checked(NamedTuple):
    """A checked file: its undamaged records, its size, its CRC-32C, and a line for each fault."""

    records: int
    bytes: int
    crc32c: str
    faults: list


def check(settings):
    """Checks every byte of files (`InspectionSettings`), and prints each fault with its record.

    Returns:
      The number of faults.

    Raises:
      UserError: a file cannot be read.
    """
    paths = example_files(settings.input_file, "input_file", may_be_empty=True)
    require_read(settings)
    checked, missing = check_files(paths, settings.vocab_file)
    for result in checked.values():
        for fault in result.faults[:FAULTS_SHOWN]:
            console.tell(fault)
        if len(result.faults) > FAULTS_SHOWN:
            console.tell(f"more faults in the same file: {len(result.faults) - FAULTS_SHOWN:,}")
    for line in missing + parts_of_sets(paths, "input_file"):
        console.tell(line)
    faults = sum(len(result.faults) for result in checked.values()) + len(missing)
    records = sum(result.records for result in checked.values())
    size = sum(result.bytes for result in checked.values())
    files_of = collections.Counter(map(manifest_name, paths))
    plain = sum(count for path, count in files_of.items() if not shards_in(path))
    console.tell(
        f"{console.plural(len(paths), 'file')}, {console.plural(records, 'record')}, "
        f"{size / 1e6:,.1f} MB: {console.plural(faults, 'fault') if faults else 'no fault'}"
        + (f"; {console.plural(plain, 'file')} without a manifest to compare with" if plain else "")
    )
    return faults


def check_files(paths, vocab_file=""):
    """Checks every byte of TFRecord files, and the sets that the manifests beside them name.

    If there is a manifest that does not name a file, the file is foreign; a file that is named but
    does not exist is missing. Without a `vocab_file`, the examples' own, only the size of the
    vocabulary is checked, if a manifest tells it.

    Returns:
      (dict of path to `Checked`, list of faults for missing files).

    Raises:
      UserError: a file, a manifest or the vocabulary cannot be read.
    """
    vocabulary = Vocabulary.from_file(vocab_file) if vocab_file else None
    ends = (vocabulary.cls_id, vocabulary.sep_id) if vocabulary else None
    named = {path: shards_in(path) for path in set(map(manifest_name, paths))}
    checked, sets = {}, {}
    with console.progress(total=sum(map(storage.size, paths)), unit="B", unit_scale=True) as bar:
        for path in paths:
            in_folder = named[manifest_name(path)]
            name, entry, shard = in_folder.get(os.path.basename(path), (None, {}, None))
            flags, lengths, features = entry.get("flags"), None, None
            if flags:
                lengths = schema.Lengths(*(flags.get(key, 0) for key in schema.Lengths._fields))
                is_masked = flags.get("masking") != UNMASKED
                features = schema.features(is_masked, flags.get("pair") == PACKED)
            size = len(vocabulary) if vocabulary else entry.get("vocab_size", ANY_VOCABULARY)
            result = check_file(path, lengths, size, features, ends, bar.update)
            of_other = fault_of_vocabulary(path, vocab_file) if vocabulary else None
            if of_other:
                result.faults.insert(0, f"{path}: {of_other}")
            if shard:
                sets[os.path.dirname(path), name] = entry
                result.faults.extend(_differences(path, result, shard))
            elif in_folder:
                result.faults.append(f"{path}: foreign: the manifest beside it does not name it")
            checked[path] = result
    missing = [
        f"{path}: is missing, but the manifest names it"
        for (folder, _), entry in sets.items()
        for path in (os.path.join(folder, shard["file"]) for shard in entry["shards"])
        if not storage.exists(path)
    ]
    return checked, missing


def check_file(path, lengths, vocab_size, features=None, ends=None, show=lambda count: None):
    """Checks one file completely, and returns a `Checked`.

    What is not given is that of the file's first good record.

    Args:
      path: a TFRecord file.
      lengths: the `schema.Lengths` of its examples, or None.
      vocab_size: exclusive bound on the ids.
      features: the features of its examples, or None.
      ends: the ids of [CLS] and [SEP], with which examples begin and end, or None.
      show: called with the number of bytes of each frame that was read.

    Raises:
      UserError: the file cannot be read.
    """
    faults, batch, crc, size, records = [], [], 0, 0, 0
    rules = _Rules(path, lengths, vocab_size, features, ends)
    for number, frame, fault in read_frames(path):
        crc, size = google_crc32c.extend(crc, frame), size + len(frame)
        show(len(frame))
        if fault:
            faults.append(f"{path}, record {number}: {fault}")
            continue
        records += 1
        batch.append((number, record_of(frame)))
        if len(batch) == CHECKED_AT_ONCE:
            faults += rules.faults_of(batch)
            batch = []
    faults += rules.faults_of(batch)
    if not records:
        faults.append(f"{path}: has no undamaged record")
    return Checked(records, size, f"{crc:08x}", faults)


class _Rules:
    """What the records of a file must be; what is unknown, the first good record decides."""

    def __init__(self, path, lengths, vocab_size, features, ends):
        self._path = path
        self._lengths = lengths
        self._features = features
        self._ends = ends
        self._limits = schema.Limits(vocab_size, type_vocab_size=2)

    def faults_of(self, batch):
        """Returns the faults of (number, record) pairs, a list of str."""
        faults = {}
        while batch and None in (self._lengths, self._features):
            number, record = batch[0]
            lengths = self._lengths or _lengths_of(record)
            features = self._features or schema.features_of(record)
            faults[number] = schema.fault_of(record, lengths, self._limits, features)
            if faults[number]:
                batch = batch[1:]
            else:
                self._lengths, self._features = lengths, features
        values = self._parsed(batch)
        if values is None:
            faults |= {number: self._fault_of(record) for number, record in batch}
            batch = [(number, record) for number, record in batch if not faults[number]]
            values = self._parsed(batch)
        for place, fault in self._row_faults(values) if values else ():
            number, record = batch[place]
            faults[number] = self._fault_of(record) or f"it has {fault}"
        return [f"{self._path}, record {n}: {fault}" for n, fault in faults.items() if fault]

    def _fault_of(self, record):
        return schema.fault_of(record, self._lengths, self._limits, self._features)

    def _parsed(self, batch):
        """Returns a dict of arrays [B, length], or None if a record is no such example."""
        import tensorflow as tf

        if not batch:
            return None
        spec = schema.parsing_spec(self._lengths, self._features)
        try:
            values = tf.io.parse_example([record for _, record in batch], spec)
        # The message quotes a record that is no example; if that is not UTF-8, it has no other
        # error.
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
            return None
        return {name: value.numpy() for name, value in values.items()}

    def _row_faults(self, values):
        """Yields (place in the batch, fault) for each faulty row."""
        if self._ends is None:
            ids, length = values["input_ids"][0], values["input_mask"][0].sum()
            self._ends = ids[0], ids[min(max(length, 1), len(ids)) - 1]
        first = {}
        for fault, rows in row_faults(values, self._limits.vocab_size, self._ends).items():
            for place in rows.nonzero()[0].tolist():
                first.setdefault(place, fault)
        return first.items()


def _lengths_of(record):
    """Returns the `Lengths` of a record; (0, 0) if it is not a `tf.train.Example`."""
    features = schema.parsed(record)
    if features is None:
        return schema.Lengths(0, 0)
    names = ("input_ids", "masked_lm_positions")
    return schema.Lengths(*(len(features[name].int64_list.value) for name in names))


def _differences(path, result, shard):
    """Yields the differences between a file, the manifest and the file's summary."""
    for key, what in (("records", "records"), ("bytes", "bytes")):
        if getattr(result, key) != shard[key]:
            yield f"{path}: {getattr(result, key):,} {what}, but the manifest says {shard[key]:,}"
    if result.crc32c != shard["crc32c"]:
        yield f"{path}: CRC-32C {result.crc32c}, but the manifest says {shard['crc32c']}"
    summary = read_summary(path)
    if summary is None:
        yield f"{summary_name(path)}: is missing or damaged"
    elif summary.get("crc32c") != shard["crc32c"]:
        yield f"{summary_name(path)}: describes another file than the manifest"
