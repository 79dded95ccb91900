"""The files of a set: their names, the summary beside each, and the manifest of their folder.

A shard's summary (`train.tfrecord.json`) and the set's entry in `manifest.json` tell the same of a
shard: its size, its checksum and the `identity` that determines its bytes. Both formats have a
version; files of every earlier one are read.
"""

import collections
import contextlib
import json
import os
import re

from nezha_tf.util import files, forms, locks, storage
from nezha_tf.util.errors import UserError

SUMMARY_FORMAT = "nezha_tf pretraining shard 1"
MANIFEST_FORMAT = "nezha_tf pretraining data 1"
MANIFEST_NAME = "manifest.json"
# What is read of the identity of shards, see `provenance.identity_of`.
_IDENTITY = {
    "pair": forms.May(forms.is_text),
    "do_lower_case": forms.May(forms.is_truth),
    "max_seq_length": forms.May(forms.is_count),
    "max_predictions_per_seq": forms.May(forms.is_count),
    str: forms.is_scalar,
}
# What is read of a shard in the manifest, and of a finished shard's summary.
_SHARD = {
    "documents": forms.is_count,
    "records": forms.is_count,
    "bytes": forms.is_count,
    "crc32c": forms.is_text,
}
FINISHED = {
    **_SHARD,
    "statistics": {"unknown_characters": {str: forms.is_count}, str: forms.is_count},
    "anomalies": {str: forms.is_count},
    "identity": _IDENTITY,
}
# Of older files there may be the identity alone.
_SUMMARY = {**{key: forms.May(form) for key, form in FINISHED.items()}, "identity": _IDENTITY}
# What is read of a set's entry in the manifest.
_ENTRY = {
    "flags": forms.May(
        {
            "vocab_file": forms.May(forms.is_text),
            "text_fields": forms.May([forms.is_text]),
            **_IDENTITY,
        }
    ),
    "identity": _IDENTITY,
    "vocab_size": forms.May(forms.is_count),
    "shards": [{"file": forms.is_name, **_SHARD}],
}
# The names that `shard_name` gives: what is before the number, the number of shards, the ending.
_SHARD_NAME = re.compile(r"(.*-)\d{5,}(-of-(\d{5,})[^/]*)")


def shard_names(output_file, count):
    """Returns a set's files: `train.tfrecord`, or `train-00000-of-00032.tfrecord` and so on."""
    return [shard_name(output_file, index, count) for index in range(count)]


def shard_name(output_file, index, count):
    """Returns the file of one shard of a set; sorted as text, files are in the shards' order."""
    stem, extension = os.path.splitext(output_file)
    digits = max(5, len(str(count - 1)))
    return output_file if count == 1 else f"{stem}-{index:0{digits}d}-of-{count:05d}{extension}"


def is_one_of_many(path):
    """Whether a file has the name of one of several shards."""
    return bool(_SHARD_NAME.fullmatch(path))


def summary_name(path):
    """Returns the name of the summary beside a shard."""
    return path + ".json"


def manifest_name(path):
    """Returns the name of the manifest beside a shard."""
    return os.path.join(os.path.dirname(path), MANIFEST_NAME)


def example_files(patterns, flag, may_be_empty=False):
    """Returns the TFRecord files that a list of names and globs matches, sorted.

    The other files that we write are left out, because `train*` matches them too: summaries,
    manifests, and unfinished files of killed runs. Arguments and errors: see `files.expand`.
    """
    # An unfinished file has no content for long.
    matches = files.expand(patterns, flag, may_be_empty=True)
    kept = [path for path in matches if not _is_beside_shards(path)]
    if not may_be_empty:
        files.require_content(storage.sizes(kept), flag)
    if not kept:
        raise UserError(
            f"--{flag}={patterns}: {matches[0]} describes examples but has none; name the TFRecord "
            "files themselves"
        )
    return kept


def _is_beside_shards(path):
    shard = path.removesuffix(summary_name(""))
    is_summary = shard != path and storage.exists(shard)
    return is_summary or os.path.basename(path) == MANIFEST_NAME or path.endswith(".tmp")


def parts_of_sets(paths, flag):
    """Returns a warning for each set of which some shards are not among the files of a flag.

    An interrupted run leaves such sets, and a glob takes them without a word. A user may want a
    part of a set, so this is no error.
    """
    sets = collections.defaultdict(set)
    for path in paths:
        if match := _SHARD_NAME.fullmatch(path):
            sets[f"{match[1]}*{match[2]}", int(match[3])].add(path)
    return [
        f"warning: --{flag} has only {len(members)} of the {count} files {name}; name all of them, "
        "and if some do not exist, repeat the command that made the others: it makes the rest"
        for (name, count), members in sets.items()
        if len(members) < count
    ]


def read_summary(path):
    """Returns the summary of a shard, a dict, or None if there is none of this package.

    Raises:
      UserError: it cannot be read, or a value is none that `make_shard` writes.
    """
    summary = _read(summary_name(path), SUMMARY_FORMAT)
    if summary:
        forms.require(summary, _SUMMARY, summary_name(path))
    return summary or None


def _read(path, form):
    """Returns a JSON file's object; None: the file is missing; {}: it is not of this `format`."""
    try:
        with storage.open_binary(path, "rb") as file:
            value = json.loads(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):  # a file of another program
        return {}
    return value if isinstance(value, dict) and value.get("format") == form else {}


def read_manifest(path):
    """Returns a dict of the base names of sets to their entries; {} if there is no manifest.

    Raises:
      UserError: the file cannot be read, or is not a manifest of this package.
    """
    manifest = _read(path, MANIFEST_FORMAT)
    if manifest is None:
        return {}
    if not manifest:
        raise UserError(f"{path} is not a manifest of pretraining data; remove it")
    forms.require(manifest, {"data_sets": {str: _ENTRY}}, path)
    return manifest["data_sets"]


def shards_in(path):
    """Returns a dict of what a manifest says about the files that it names, by their base names.

    The values are (name of the set, the set's entry, the shard's part of it); see `read_manifest`.
    """
    return {
        shard["file"]: (name, entry, shard)
        for name, entry in read_manifest(path).items()
        for shard in entry["shards"]
    }


def write_entry(output_file, entry):
    """Writes the entry of a set into the manifest of its folder; the entries of other sets stay.

    None removes the entry, because shards of the set are about to be made.

    Raises:
      UserError: the manifest cannot be read or written.
    """
    path, name = manifest_name(output_file), os.path.basename(output_file)
    with _locked(path):
        sets = read_manifest(path)
        if sets.pop(name, entry) is None:
            return
        sets |= {name: entry} if entry else {}
        # By name: the bytes do not depend on which set was made first.
        manifest = {"format": MANIFEST_FORMAT, "data_sets": dict(sorted(sets.items()))}
        files.write_text(path, json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")


@contextlib.contextmanager
def _locked(path):
    """Lets other runs wait: of two that change a manifest at once, one would be lost."""
    folder, name = os.path.split(path)
    try:
        with locks.held(os.path.join(folder, f".{name}.lock"), path, waits=True):
            yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
