"""The sets of files that a run makes, the training set and the held-out set, and what is finished.

Temporary files of processes that were killed are removed here too.
"""

import collections
import contextlib
import dataclasses
import glob
import os
import re

from nezha_tf.corpus.shard_files import FINISHED, read_summary, shard_names, summary_name
from nezha_tf.corpus.statistics import Statistics
from nezha_tf.util import files, forms, storage
from nezha_tf.util.errors import UserError

# Messages for values that are too long or too unclear to print.
_MADE = {
    "input_file": "from another text (--input_file, the files' order, or bytes that are not UTF-8)",
    "vocab_file": "with another vocabulary (--vocab_file)",
    "user_dict": "with another dictionary (--user_dict)",
    "segmenter": "with another segmenter (--segmenter) or another version of it",
}


class OutputSet:
    """The shards of a set, and the counts of its finished shards."""

    def __init__(self, name, output_file, documents, repetitions, count):
        self.name = name  # `TRAINING` or `HELD_OUT`
        self.output_file = output_file  # without the numbers of shards
        self.documents = documents  # `Documents`
        self.repetitions = repetitions  # number of passes over each document
        self.paths = shard_names(output_file, count)
        self.finished = {}  # file to `documents`, `records`, `bytes` and `crc32c` of the shard
        self.statistics = Statistics()  # the sum of those of finished shards
        self.anomalies = collections.Counter()  # `documents.ANOMALIES` of finished shards

    def add(self, path, summary):
        """Adds a finished shard by its file and its summary, a dict; see `make_shard`."""
        kept = ("documents", "records", "bytes", "crc32c")
        self.finished[path] = {key: summary[key] for key in kept}
        self.statistics.add(Statistics.from_dict(summary["statistics"]))
        self.anomalies.update(summary["anomalies"])

    def add_finished(self, identity):
        """Adds the shards that exist already, and returns the number of their records.

        Beside a finished shard there is a summary with the `identity` (`identity_of`) and the
        file's size. Its checksum is compared by `tools/inspect_tfrecords.py --check` only.

        Raises:
          UserError: a file with the set's name was made with other flags, or has no summary.
        """
        names, records = set(self.paths).difference(self.finished), 0
        for path in _existing_files(self.output_file):
            summary = read_summary(path)
            if summary is None:
                raise UserError(
                    f"{path} is there, but not its summary {os.path.basename(summary_name(path))}; "
                    "remove the file, or choose another --output_file"
                )
            forms.require(summary, FINISHED, summary_name(path))
            _refuse_other(path, summary["identity"], identity)
            if path in names and storage.size(path) == summary["bytes"]:
                self.add(path, summary)
                records += summary["records"]
        return records

    def wanted(self):
        """Returns a set of (set name, index) of the shards to make."""
        paths = enumerate(self.paths)
        return {(self.name, index) for index, path in paths if path not in self.finished}

    def entry(self, settings, identity, vocab_size, inputs):
        """Returns the finished set's entry in the manifest: a dict of JSON values.

        Args:
          settings, identity: the `Settings`, and see `provenance.identity_of`.
          vocab_size: number of tokens in the vocabulary.
          inputs: `Measure.inputs`, the files of the corpus.
        """
        statistics = self.statistics
        shards = [{"file": os.path.basename(path), **self.finished[path]} for path in self.paths]
        totals = ("documents", "records", "bytes")
        return {
            "flags": dataclasses.asdict(settings),
            "identity": identity,
            "vocab_size": vocab_size,
            "inputs": inputs,
            "totals": {key: sum(shard[key] for shard in shards) for key in totals},
            "shares": {
                "used": statistics.used_share,
                "masked": statistics.masked / statistics.tokens,
                "replaced": statistics.replaced / statistics.tokens,
                "kept": statistics.kept / statistics.tokens,
            },
            "statistics": statistics.to_dict(),
            "anomalies": dict(sorted(self.anomalies.items())),
            "shards": shards,
        }

    def remove_leftovers(self):
        """Removes temporary files of the set whose process, on this machine, has ended."""
        if storage.is_remote(self.output_file):  # its processes may run on other machines
            return
        stem, extension = map(glob.escape, os.path.splitext(self.output_file))
        for path in storage.glob(f"{stem}*{extension}*.tmp"):
            process_id = files.writer_of(path)
            if process_id is not None and not _is_alive(process_id):
                _remove(path)


def _existing_files(output_file):
    """Returns the existing files of a set, whatever its number of shards, sorted."""
    stem, extension = os.path.splitext(output_file)
    shard = re.compile(re.escape(stem) + r"-\d{5,}-of-\d{5,}" + re.escape(extension))
    paths = storage.glob(f"{glob.escape(stem)}-*{glob.escape(extension)}")
    return sorted(filter(shard.fullmatch, paths)) + [output_file] * storage.exists(output_file)


def _refuse_other(path, made, identity):
    for flag, value in identity.items():
        if made.get(flag) == value:
            continue
        how = f"with --{flag}={made.get(flag)}, not {value}"
        if flag == "eval_share" and not (made.get(flag) and value):
            how = f"{'without' if value else 'with'} --eval_output_file"
        raise UserError(
            f"{path} was made {_MADE.get(flag, how)}; pass the flags that it was made with, "
            "remove the old files, or choose another --output_file"
        )


def remove_unfinished(path, process_id):
    """Removes the temporary files of a shard whose worker was killed."""
    for name in (path, summary_name(path)):
        _remove(files.temporary_name(name, process_id))


def remove_shard(path):
    """Removes a shard and its summary, if they exist."""
    _remove(path)
    _remove(summary_name(path))


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        storage.remove(path)


def _is_alive(process_id):
    """Whether a process is running, which a zombie is not; where /proc is missing, it may be."""
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return not os.path.isdir("/proc/self")
