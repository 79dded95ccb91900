"""Whether TFRecord files are whole, fit the schema, and are those that a manifest tells of."""

import os
from typing import NamedTuple

import google_crc32c
import numpy as np

from nezha_tf import console, storage
from nezha_tf.data import schema
from nezha_tf.data.corruption.policies import UNMASKED
from nezha_tf.data.framing import read_frames, record_of
from nezha_tf.pretraining_data.manifest import manifest_path, shards_named
from nezha_tf.pretraining_data.provenance import fault_of_vocabulary
from nezha_tf.pretraining_data.shard_files import read_record, record_name
from nezha_tf.text.vocabulary import Vocabulary

CHECKED_AT_ONCE = 512
_FEATURES = {False: schema.FEATURES, True: schema.UNMASKED_FEATURES}
# Where no vocabulary says how many pieces there are.
ANY_VOCABULARY = 2**31


class Checked(NamedTuple):
    """What was found of one file.

    Attributes:
      records: how many undamaged records there are.
      bytes, crc32c: of the file.
      faults: list of str, each with file and record.
    """

    records: int
    bytes: int
    crc32c: str
    faults: list


def check_files(paths, vocab_file=""):
    """Checks every byte of files, and the sets that they belong to.

    A file belongs to the set whose manifest, in the file's folder, names it; a file of a
    folder with a manifest that does not name it is foreign, and one that is named and is not
    there is missing.

    Args:
      paths: TFRecord files.
      vocab_file: the vocabulary that they should be of; where none is given, the manifest
        bounds the ids.

    Returns:
      (dict of path to `Checked`, list of faults that are no file's own: missing files).

    Raises:
      UserError: a file, a manifest or the vocabulary cannot be read.
    """
    vocabulary = Vocabulary.from_file(vocab_file) if vocab_file else None
    ends = (vocabulary.cls_id, vocabulary.sep_id) if vocabulary else None
    named = {path: shards_named(path) for path in set(map(manifest_path, paths))}
    checked, sets = {}, {}
    with console.progress(total=sum(map(storage.size, paths)), unit="B", unit_scale=True) as bar:
        for path in paths:
            in_folder = named[manifest_path(path)]
            name, entry, shard = in_folder.get(os.path.basename(path), (None, None, None))
            flags = entry["flags"] if entry else {}
            lengths = [flags.get(name, 0) for name in schema.Lengths._fields]
            size = entry["vocab_size"] if entry else ANY_VOCABULARY
            size = len(vocabulary) if vocabulary else size
            lengths = schema.Lengths(*lengths) if flags else None
            features = _FEATURES[flags["masking"] == UNMASKED] if flags else None
            found = check_file(path, lengths, size, bar.update, features, ends)
            of_other = fault_of_vocabulary(path, vocab_file) if vocabulary else None
            if of_other:
                found.faults.insert(0, f"{path}: {of_other}")
            if entry:
                sets[os.path.dirname(path), name] = entry
                found.faults.extend(_differences(path, found, shard))
            elif in_folder:
                found.faults.append(f"{path}: foreign: the manifest beside it does not name it")
            checked[path] = found
    missing = [
        f"{path}: is missing, and the manifest names it"
        for (folder, _), entry in sets.items()
        for path in (os.path.join(folder, shard["file"]) for shard in entry["shards"])
        if not storage.exists(path)
    ]
    return checked, missing


def check_file(path, lengths, vocab_size, tell=lambda count: None, features=None, ends=None):
    """Reads one file through.

    Args:
      path: a TFRecord file.
      lengths: the `schema.Lengths` of its examples; None takes those of the first record.
      vocab_size: exclusive bound on the ids.
      tell: called with the bytes of each frame that was read.
      features: the features of its examples; None takes those of the first record.
      ends: ids of [CLS] and [SEP], which examples begin and end with; None takes those that the
        first record begins and ends with.

    Returns:
      A `Checked`.

    Raises:
      UserError: it cannot be read.
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
        lengths = lengths or _lengths_of(record)
        features = features or schema.features_of(record)
        batch.append((number, record))
        if len(batch) == CHECKED_AT_ONCE:
            found, ends = _faults_of(path, batch, lengths, limits, features, ends)
            faults, batch = faults + found, []
    if batch:
        faults += _faults_of(path, batch, lengths, limits, features, ends)[0]
    if not records:
        faults.append(f"{path}: holds no undamaged record")
    return Checked(records, size, f"{crc:08x}", faults)


def _lengths_of(record):
    """Returns the `Lengths` that a record has, (0, 0) if it is none of ours."""
    features = schema.parsed(record)
    if features is None:
        return schema.Lengths(0, 0)
    names = ("input_ids", "masked_lm_positions")
    return schema.Lengths(*(len(features[name].int64_list.value) for name in names))


def _faults_of(path, batch, lengths, limits, features, ends):
    """Looks at some records.

    Args:
      path: their file.
      batch: list of (number, record), one at least.
      lengths, limits, features: as for `schema.fault_of`.
      ends: as for `check_file`.

    Returns:
      (the faults, those that the schema refuses first; `ends`, or those of the first record).
    """
    import tensorflow as tf

    numbers, records = zip(*batch, strict=True)
    faults = {}
    try:
        values = tf.io.parse_example(list(records), schema.parsing_spec(lengths, features))
    except tf.errors.InvalidArgumentError:
        faults = {n: schema.fault_of(record, lengths, limits, features) for n, record in batch}
        faults = {number: fault for number, fault in faults.items() if fault}
        fitting = [(number, record) for number, record in batch if number not in faults]
        lines = [f"{path}, record {number}: {fault}" for number, fault in faults.items()]
        if not faults or not fitting:
            return lines, ends
        found, ends = _faults_of(path, fitting, lengths, limits, features, ends)
        return lines + found, ends
    values = {name: value.numpy() for name, value in values.items()}
    found = _ends_of(values)
    ends = ends or tuple(found[0].tolist())
    is_cut = (found != ends).any(axis=1)
    for row in np.flatnonzero(is_cut | _is_odd(values, lengths, limits)):
        fault = schema.fault_of(records[row], lengths, limits, features)
        cut = f"it begins and ends with {found[row].tolist()}, not with {list(ends)}"
        odd = "its padding, its words or its predictions make no sense"
        faults[numbers[row]] = fault or (cut if is_cut[row] else odd)
    return [f"{path}, record {number}: {fault}" for number, fault in faults.items()], ends


def _ends_of(values):
    """Returns the first and the last piece of each example, [B, 2]."""
    last = np.maximum(values["input_mask"].sum(axis=1) - 1, 0)
    last = np.minimum(last, values["input_ids"].shape[1] - 1)
    ids = values["input_ids"]
    return np.stack([ids[:, 0], ids[np.arange(len(ids)), last]], axis=1)


def _is_odd(values, lengths, limits):
    """Returns bool [B]: ids out of bounds, or masks, words or predictions that no example has."""
    odd = np.zeros(len(values["input_ids"]), bool)
    for name, value in values.items():
        if value.dtype == np.int64:
            odd |= ((value < 0) | (value >= limits.of(name, lengths))).any(axis=1)
    used = values["input_mask"].sum(axis=1, keepdims=True)
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
    """Returns bool [B]: a word in padding or at a special piece, or a segment without one.

    [SEP] is what an example ends with.
    """
    places = np.arange(ids.shape[1])
    separators = np.take_along_axis(ids, np.maximum(lengths - 1, 0)[:, None], axis=1)
    is_text = (ids != separators) & (places > 0) & (places < lengths[:, None])
    odd = (word_starts.astype(bool) & ~is_text).any(axis=1)
    begins = is_text[:, 1:] & ~is_text[:, :-1]
    return odd | (begins & (word_starts[:, 1:] == 0)).any(axis=1)


def _differences(path, found, shard):
    """Yields how a file differs from what the manifest and its record say."""
    for key, what in (("records", "records"), ("bytes", "bytes")):
        if getattr(found, key) != shard[key]:
            yield f"{path}: {getattr(found, key):,} {what}, and the manifest says {shard[key]:,}"
    if found.crc32c != shard["crc32c"]:
        yield f"{path}: CRC-32C {found.crc32c}, and the manifest says {shard['crc32c']}"
    record = read_record(path)
    if record is None:
        yield f"{record_name(path)}: is missing or damaged"
    elif record["crc32c"] != shard["crc32c"]:
        yield f"{record_name(path)}: is of another file than the manifest tells of"
