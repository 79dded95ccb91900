"""Shows examples as text, or checks files; the code of `tools/inspect_tfrecords.py`."""

import collections
import functools
import os
import sys

from nezha_tf.corpus.example_text import LEGEND, UNMASKED_LEGEND, arrays_of, text_of
from nezha_tf.corpus.manifest import manifest_path, shards_named
from nezha_tf.corpus.provenance import fault_of_vocabulary
from nezha_tf.corpus.record_check import check_files
from nezha_tf.corpus.shard_files import example_files, parts_of_sets
from nezha_tf.data.framing import read_frames, record_of
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import refuse

FAULTS_SHOWN = 20


def show(settings):
    """Prints examples with their predictions marked.

    Args:
      settings: `InspectionSettings`.

    Raises:
      UserError: a file or its vocabulary cannot be read, or a record to show is damaged or is
        not an example.
    """
    # The caches make each manifest and each vocabulary be read only once.
    named, vocabulary_in = functools.cache(shards_named), functools.cache(Vocabulary.from_file)
    shown = 0
    for path in example_files(settings.input_file, "input_file"):
        source = settings.vocab_file or _vocab_file(path, named(manifest_path(path)))
        vocabulary = vocabulary_in(source)
        of_other = fault_of_vocabulary(path, source)
        if of_other:
            raise UserError(f"{path} {of_other}")
        for number, frame, fault in read_frames(path):
            if shown == settings.num_records:
                return
            if number < settings.first_record:
                continue
            try:
                if fault:
                    raise ValueError(fault)
                features = arrays_of(record_of(frame))
                text = text_of(features, vocabulary, sys.stdout.isatty())
            except ValueError as error:
                raise UserError(f"{path}, record {number}: {error}") from error
            except IndexError as error:
                raise UserError(
                    f"{path}, record {number}: an id is outside the {len(vocabulary)} tokens of "
                    "the vocabulary; pass the --vocab_file that it was made with"
                ) from error
            if not shown:
                print(UNMASKED_LEGEND if "word_starts" in features else LEGEND)
            print(f"{path}, record {number}: {text}")
            shown += 1
    if not shown:
        raise UserError(f"--first_record={settings.first_record}: no file has that many records")


def check(settings):
    """Checks every byte of files, and prints each fault with file and record.

    Args:
      settings: `InspectionSettings`; without a `vocab_file` the manifest bounds the ids.

    Returns:
      The number of faults.

    Raises:
      UserError: a file cannot be read.
    """
    paths = example_files(settings.input_file, "input_file", may_be_empty=True)
    refuse(settings, ("first_record", "num_records"), "--check")
    checked, missing = check_files(paths, settings.vocab_file)
    for found in checked.values():
        for fault in found.faults[:FAULTS_SHOWN]:
            print(fault)
        if len(found.faults) > FAULTS_SHOWN:
            print(f"more faults in the same file: {len(found.faults) - FAULTS_SHOWN:,}")
    for line in missing + parts_of_sets(paths, "input_file"):
        print(line)
    faults = sum(len(found.faults) for found in checked.values()) + len(missing)
    records = sum(found.records for found in checked.values())
    size = sum(found.bytes for found in checked.values())
    files_of = collections.Counter(map(manifest_path, paths))
    plain = sum(count for path, count in files_of.items() if not shards_named(path))
    print(
        f"{console.plural(len(paths), 'file')}, {console.plural(records, 'record')}, "
        f"{size / 1e6:,.1f} MB: {console.plural(faults, 'fault') if faults else 'no fault'}"
        + (f"; {console.plural(plain, 'file')} without a manifest to compare with" if plain else "")
    )
    return faults


def _vocab_file(path, named):
    """Returns the vocabulary of a file; `named` is the `shards_named` of its manifest."""
    _, entry, _ = named.get(os.path.basename(path), (None, None, None))
    vocab_file = entry.get("flags", {}).get("vocab_file", "") if entry else ""
    if not storage.exists(vocab_file):
        raise UserError(f"{path}: --vocab_file is needed, the vocabulary that it was made with")
    return vocab_file
