"""Checks that TFRecord files are complete, fit the schema, and agree with their manifest.

The code of `tools/inspect_tfrecords.py --check`.
"""

import collections
import os
from typing import NamedTuple

import google_crc32c
import numpy as np

from nezha_tf.corpus.provenance import fault_of_vocabulary
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
_FEATURES = {False: schema.FEATURES, True: schema.UNMASKED_FEATURES}
# The bound on ids if the size of the vocabulary is unknown.
ANY_VOCABULARY = 2**31


class Checked(NamedTuple):
    """The result of checking a file: its size, its CRC-32C and the number of undamaged records.

    `faults` is a list of str, each with file and record.
    """

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
            print(fault)
        if len(result.faults) > FAULTS_SHOWN:
            print(f"more faults in the same file: {len(result.faults) - FAULTS_SHOWN:,}")
    for line in missing + parts_of_sets(paths, "input_file"):
        print(line)
    faults = sum(len(result.faults) for result in checked.values()) + len(missing)
    records = sum(result.records for result in checked.values())
    size = sum(result.bytes for result in checked.values())
    files_of = collections.Counter(map(manifest_name, paths))
    plain = sum(count for path, count in files_of.items() if not shards_in(path))
    print(
        f"{console.plural(len(paths), 'file')}, {console.plural(records, 'record')}, "
        f"{size / 1e6:,.1f} MB: {console.plural(faults, 'fault') if faults else 'no fault'}"
        + (f"; {console.plural(plain, 'file')} without a manifest to compare with" if plain else "")
    )
    return faults


def check_files(paths, vocab_file=""):
    """Checks every byte of files, and the sets that they belong to.

    The manifest in a file's folder says which set the file belongs to. If there is a manifest that
    does not name the file, the file is foreign; a file that is named but does not exist is missing.

    Args:
      paths: TFRecord files.
      vocab_file: the vocabulary that the examples should have been made with; "": only the size
        of the vocabulary in the manifest is checked.

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
            name, entry, shard = in_folder.get(os.path.basename(path), (None, None, None))
            flags = entry.get("flags", {}) if entry else {}
            lengths = [flags.get(name, 0) for name in schema.Lengths._fields]
            size = entry.get("vocab_size", ANY_VOCABULARY) if entry else ANY_VOCABULARY
            size = len(vocabulary) if vocabulary else size
            lengths = schema.Lengths(*lengths) if flags else None
            features = _FEATURES[flags.get("masking") == UNMASKED] if flags else None
            result = check_file(path, lengths, size, bar.update, features, ends)
            of_other = fault_of_vocabulary(path, vocab_file) if vocabulary else None
            if of_other:
                result.faults.insert(0, f"{path}: {of_other}")
            if entry:
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


def check_file(path, lengths, vocab_size, tell=lambda count: None, features=None, ends=None):
    """Checks one file completely.

    Args:
      path: a TFRecord file.
      lengths: the `schema.Lengths` of its examples; None: those of the first good record.
      vocab_size: exclusive bound on the ids.
      tell: called with the number of bytes of each frame that was read.
      features: the features of its examples; None: those of the first good record.
      ends: the ids of [CLS] and [SEP], with which examples begin and end; None: the first and the
        last id of the first good record.

    Returns:
      A `Checked`.

    Raises:
      UserError: the file cannot be read.
    """
    faults, batch, crc, size, records = [], [], 0, 0, 0
    limits = schema.Limits(vocab_size, type_vocab_size=2)
    for number, frame, fault in read_frames(path):
        crc, size = google_crc32c.extend(crc, frame), size + len(frame)
        tell(len(frame))
        if fault:
            faults.append(f"{path}, record {number}: {fault}")
            continue
        records += 1
        record = record_of(frame)
        if lengths is None or features is None:
            kind = lengths or _lengths_of(record), features or schema.features_of(record)
            fault = schema.fault_of(record, kind[0], limits, kind[1])
            if fault:
                faults.append(f"{path}, record {number}: {fault}")
                continue
            lengths, features = kind
        batch.append((number, record))
        if len(batch) == CHECKED_AT_ONCE:
            more, ends = _faults_of(path, batch, lengths, limits, features, ends)
            faults, batch = faults + more, []
    if batch:
        faults += _faults_of(path, batch, lengths, limits, features, ends)[0]
    if not records:
        faults.append(f"{path}: has no undamaged record")
    return Checked(records, size, f"{crc:08x}", faults)


def _lengths_of(record):
    """Returns the `Lengths` of a record; (0, 0) if it is not a `tf.train.Example`."""
    features = schema.parsed(record)
    if features is None:
        return schema.Lengths(0, 0)
    names = ("input_ids", "masked_lm_positions")
    return schema.Lengths(*(len(features[name].int64_list.value) for name in names))


def _faults_of(path, batch, lengths, limits, features, ends):
    """Checks a non-empty batch of (number, record); `ends` are those of `check_file`.

    Returns:
      (list of faults, those found by the schema first; `ends`, or those of the first record).
    """
    import tensorflow as tf

    numbers, records = zip(*batch, strict=True)
    faults = {}
    try:
        values = tf.io.parse_example(list(records), schema.parsing_spec(lengths, features))
    # The message quotes a record that is no example; if that is not UTF-8, it has no other error.
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        faults = {n: schema.fault_of(record, lengths, limits, features) for n, record in batch}
        faults = {number: fault for number, fault in faults.items() if fault}
        fitting = [(number, record) for number, record in batch if number not in faults]
        lines = [f"{path}, record {number}: {fault}" for number, fault in faults.items()]
        if not faults or not fitting:
            return lines, ends
        more, ends = _faults_of(path, fitting, lengths, limits, features, ends)
        return lines + more, ends
    values = {name: value.numpy() for name, value in values.items()}
    first_and_last = _ends_of(values)
    ends = ends or tuple(first_and_last[0].tolist())
    is_cut = (first_and_last != ends).any(axis=1)
    for row in np.flatnonzero(is_cut | _is_odd(values, lengths, limits)):
        fault = schema.fault_of(records[row], lengths, limits, features)
        cut = (
            f"it begins and ends with the ids {first_and_last[row].tolist()}, not with {list(ends)}"
        )
        odd = "its padding, words or predictions are invalid"
        faults[numbers[row]] = fault or (cut if is_cut[row] else odd)
    return [f"{path}, record {number}: {fault}" for number, fault in faults.items()], ends


def _ends_of(values):
    """Returns the ids of the first and the last token of each example, int64 [B, 2]."""
    last = np.maximum(values["input_mask"].sum(axis=1) - 1, 0)
    last = np.minimum(last, values["input_ids"].shape[1] - 1)
    ids = values["input_ids"]
    return np.stack([ids[:, 0], ids[np.arange(len(ids)), last]], axis=1)


def _is_odd(values, lengths, limits):
    """Returns bool [B], whether ids are out of range, or the mask, words or predictions invalid."""
    odd = np.zeros(len(values["input_ids"]), bool)
    for name, value in values.items():
        if value.dtype == np.int64:
            odd |= ((value < 0) | (value >= limits.of(name, lengths))).any(axis=1)
    # A mask of other values than 0 and 1 is odd already; its sum may be no place.
    used = np.clip(values["input_mask"].sum(axis=1, keepdims=True), 0, lengths.max_seq_length)
    is_used = np.arange(lengths.max_seq_length) < used
    odd |= (values["input_mask"] != is_used).any(axis=1)
    odd |= ((values["input_ids"] + values["segment_ids"] > 0) & ~is_used).any(axis=1)
    if "word_starts" in values:
        return odd | _has_odd_words(values["input_ids"], values["word_starts"], used[:, 0])
    positions = values["masked_lm_positions"]
    predictions = values["masked_lm_weights"].sum(axis=1, keepdims=True)
    is_predicted = np.arange(lengths.max_predictions_per_seq) < predictions
    odd |= (values["masked_lm_weights"] != is_predicted).any(axis=1)
    odd |= (is_predicted & ((positions >= used) | (positions < 1))).any(axis=1)
    rises = (np.diff(positions, axis=1) > 0) | ~is_predicted[:, 1:]
    return odd | ~rises.all(axis=1)


def _has_odd_words(ids, word_starts, lengths):
    """Returns bool [B]: a word starts outside the text, or a segment's first token starts none."""
    places = np.arange(ids.shape[1])
    separators = np.take_along_axis(ids, np.maximum(lengths - 1, 0)[:, None], axis=1)
    is_text = (ids != separators) & (places > 0) & (places < lengths[:, None])
    odd = (word_starts.astype(bool) & ~is_text).any(axis=1)
    begins = is_text[:, 1:] & ~is_text[:, :-1]
    return odd | (begins & (word_starts[:, 1:] == 0)).any(axis=1)


def _differences(path, result, shard):
    """Yields the differences between a file, the manifest and the file's summary."""
    for key, what in (("records", "records"), ("bytes", "bytes")):
        if getattr(result, key) != shard[key]:
            yield f"{path}: {getattr(result, key):,} {what}, but the manifest says {shard[key]:,}"
    if result.crc32c != shard["crc32c"]:
        yield f"{path}: CRC-32C {result.crc32c}, but the manifest says {shard['crc32c']}"
    record = read_summary(path)
    if record is None:
        yield f"{summary_name(path)}: is missing or damaged"
    elif record.get("crc32c") != shard["crc32c"]:
        yield f"{summary_name(path)}: describes another file than the manifest"
