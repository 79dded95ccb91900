"""Writes a shard: its TFRecord file, and a JSON summary of the shard beside the file.

A file with its final name is always complete. The summary is written before the file gets that
name, so every such file has a summary, and a summary without a file is ignored. Whenever a run is
killed, each of its shards is therefore either finished or made again.
"""

import collections
import contextlib
import itertools
import json
import os
import re
from typing import NamedTuple

import google_crc32c

from nezha_tf.corpus.documents import CorpusChanged
from nezha_tf.corpus.lines import sentences_of
from nezha_tf.corpus.stopwatch import EXAMPLES, TOKENS, WRITING
from nezha_tf.data.framing import frame
from nezha_tf.util import console, files, forms, storage
from nezha_tf.util.errors import UserError

FORMAT = "nezha_tf pretraining shard 1"
# What is read of the identity of shards, see `identity`.
IDENTITY = {
    "pair": forms.May(forms.is_text),
    "do_lower_case": forms.May(forms.is_truth),
    "max_seq_length": forms.May(forms.is_count),
    "max_predictions_per_seq": forms.May(forms.is_count),
    str: forms.is_scalar,
}
# What is read of a finished shard's summary, and of a shard in the manifest.
SHARD = {
    "documents": forms.is_count,
    "records": forms.is_count,
    "bytes": forms.is_count,
    "crc32c": forms.is_text,
}
FINISHED = {
    **SHARD,
    "statistics": {"unknown_characters": {str: forms.is_count}, str: forms.is_count},
    "anomalies": {str: forms.is_count},
    "identity": IDENTITY,
}
# Of older files there may be the identity alone.
_SUMMARY = {**{key: forms.May(form) for key, form in FINISHED.items()}, "identity": IDENTITY}
RECORDS_AT_ONCE = 256
# The manifest describes all sets of a folder; see `manifest`.
MANIFEST_NAME = "manifest.json"
# The names that `shard_name` gives: what is before the number, the number of shards, the ending.
_SHARD = re.compile(r"(.*-)\d{5,}(-of-(\d{5,})[^/]*)")


class ShardJob(NamedTuple):
    """A worker's task.

    Attributes:
      path: TFRecord file to write.
      documents: list of (number in the corpus, text as bytes).
      repetitions: number of passes over each document.
    """

    path: str
    documents: list
    repetitions: int


def shard_names(output_file, count):
    """Returns a set's files: `train.tfrecord`, or `train-00000-of-00032.tfrecord` and so on."""
    return [shard_name(output_file, index, count) for index in range(count)]


def shard_name(output_file, index, count):
    """Returns the file of one shard of a set; sorted as text, files are in the shards' order."""
    stem, extension = os.path.splitext(output_file)
    digits = max(5, len(str(count - 1)))
    return output_file if count == 1 else f"{stem}-{index:0{digits}d}-of-{count:05d}{extension}"


def record_name(path):
    """Returns the name of the summary beside a shard."""
    return path + ".json"


def example_files(patterns, flag, may_be_empty=False):
    """Returns the TFRecord files that a list of names and globs matches, sorted.

    The other files that we write are left out, because `train*` matches them too: summaries,
    manifests, and unfinished files of killed runs.

    Args:
      patterns, flag, may_be_empty: see `files.expand`.

    Raises:
      UserError: see `files.expand`; or no TFRecord file matches.
    """
    # An unfinished file has no content for long.
    found = files.expand(patterns, flag, may_be_empty=True)
    kept = [path for path in found if not _is_beside(path)]
    if not may_be_empty:
        files.require_content(storage.sizes(kept), flag)
    if not kept:
        raise UserError(
            f"--{flag}={patterns}: {found[0]} describes examples but has none; name the TFRecord "
            "files themselves"
        )
    return kept


def parts_of_sets(paths, flag):
    """Returns a warning for each set of which some shards are not among the files.

    An interrupted run leaves such sets, and a glob takes them without a word. A user may want a
    part of a set, so this is no error.

    Args:
      paths: TFRecord files.
      flag: the flag that names them.
    """
    sets = collections.defaultdict(set)
    for path in paths:
        if match := _SHARD.fullmatch(path):
            sets[f"{match[1]}*{match[2]}", int(match[3])].add(path)
    return [
        f"warning: --{flag} has only {len(found)} of the {count} files {name}; name all of them, "
        "and if some do not exist, repeat the command that made the others: it makes the rest"
        for (name, count), found in sets.items()
        if len(found) < count
    ]


def _is_beside(path):
    """Whether a file is a shard's summary, a manifest, or an unfinished file."""
    shard = path.removesuffix(record_name(""))
    is_record = shard != path and storage.exists(shard)
    return is_record or os.path.basename(path) == MANIFEST_NAME or path.endswith(".tmp")


def make_shard(settings, maker, job, identity):
    """Makes one shard; the same documents give the same bytes in any process.

    Args:
      settings: the `Settings`.
      maker: the `ShardMaker` of these settings; its clock gets the time of all stages but
        `READING`.
      job: the `ShardJob`.
      identity: dict of all that determines the bytes, see `identity_of`.

    Returns:
      The summary, a dict: `documents`, `records`, `bytes` and `crc32c` of the file, `statistics`,
      `anomalies` and `identity`.

    Raises:
      UserError: the files cannot be written (no space, no permission), or there is no example.
      CorpusChanged: the text is not UTF-8, which was refused when it was measured.
    """
    anomalies = collections.Counter()
    documents = []
    with maker.clock.stage(TOKENS):
        for number, text in job.documents:
            try:
                sentences = sentences_of(text, settings.on_invalid, anomalies)
            except UnicodeDecodeError as error:
                # The text was UTF-8 when it was measured.
                raise CorpusChanged(
                    f"--input_file, document {number + 1}: changed while being read; start again"
                ) from error
            if sentences:
                documents.append((number, sentences))
    try:
        with files.whole_file(job.path) as temporary:
            records = maker.make(documents, job.repetitions)
            written = _write(records, temporary, maker.clock)
            if not written["records"]:
                count = console.plural(len(job.documents), "document")
                # Of a single word no two segments can be made.
                what = "text of two words" if documents and settings.pair == "sop" else "text"
                raise UserError(
                    f"{job.path} would hold no example: there is no {what} in its {count}; "
                    f"{_advice_for_more(job.path, settings)}"
                )
            record = {
                "format": FORMAT,
                "first_document": job.documents[0][0],
                "documents": len(job.documents),
                **written,
                "statistics": maker.statistics.to_dict(),
                "anomalies": {kind: count for kind, count in anomalies.items() if count},
                "identity": identity,
            }
            text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
            files.write_text(record_name(job.path), text)
    except OSError as error:
        with contextlib.suppress(OSError):
            storage.remove(record_name(job.path))
        raise UserError(f"cannot write {job.path}: {error.strerror}") from error
    return record


def _advice_for_more(path, settings):
    """Returns how a shard gets more text."""
    if _SHARD.fullmatch(path):
        return "pass a smaller --num_output_shards"
    return "add text" + (", or pass another --eval_share" if settings.eval_share else "")


def read_record(path):
    """Returns the summary of a shard, a dict, or None if there is none.

    Raises:
      UserError: the file cannot be read, or is not as `make_shard` writes it.
    """
    try:
        with storage.open_binary(record_name(path), "rb") as file:
            record = json.loads(file.read())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):  # a file of another program
        return None
    except OSError as error:
        raise UserError(f"cannot read {record_name(path)}: {error.strerror}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return None
    forms.require(record, _SUMMARY, record_name(path))
    return record


def _write(records, path, clock):
    """Writes a TFRecord file; returns a dict of `records`, `bytes` and `crc32c`."""
    count = length = crc = 0
    with storage.open_binary(path, "wb") as file:
        while block := _next_records(records, clock):
            with clock.stage(WRITING):
                data = b"".join(map(frame, block))
                file.write(data)
                crc = google_crc32c.extend(crc, data)
            count += len(block)
            length += len(data)
        with clock.stage(WRITING):
            if not storage.is_remote(path):
                file.flush()
                os.fsync(file.fileno())  # complete even after a power failure
    return {"records": count, "bytes": length, "crc32c": f"{crc:08x}"}


def _next_records(records, clock):
    """Returns a list of the next records; [] at their end."""
    with clock.stage(EXAMPLES):
        return list(itertools.islice(records, RECORDS_AT_ONCE))
