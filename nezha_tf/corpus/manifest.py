"""Reads and writes `manifest.json`: the origin and contents of the sets in a folder."""

import contextlib
import dataclasses
import json
import os

from nezha_tf.corpus.shard_files import IDENTITY, MANIFEST_NAME, SHARD
from nezha_tf.util import files, forms, locks, storage
from nezha_tf.util.errors import UserError

FORMAT = "nezha_tf pretraining data 1"
# What is read of a set's entry.
_ENTRY = {
    "flags": forms.May(
        {
            "vocab_file": forms.May(forms.is_text),
            "text_fields": forms.May([forms.is_text]),
            **IDENTITY,
        }
    ),
    "identity": IDENTITY,
    "vocab_size": forms.May(forms.is_count),
    "shards": [{"file": forms.is_name, **SHARD}],
}


def manifest_path(output_file):
    """Returns the name of a set's manifest."""
    return os.path.join(os.path.dirname(output_file), MANIFEST_NAME)


def read_manifest(path):
    """Returns a dict of the base names of sets to their entries; {} if there is no manifest.

    Raises:
      UserError: the file cannot be read, or is not a manifest of this package.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            manifest = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(f"{path} is not a manifest of pretraining data; remove it")
    forms.require(manifest, {"data_sets": {str: _ENTRY}}, path)
    return manifest["data_sets"]


def shards_named(path):
    """Returns what a manifest says about each file that it names.

    Args:
      path: the manifest.

    Returns:
      Dict of a file's base name to (name of its set, the set's entry, the shard's part of the
      entry); {} if there is no manifest.

    Raises:
      UserError: see `read_manifest`.
    """
    return {
        shard["file"]: (name, entry, shard)
        for name, entry in read_manifest(path).items()
        for shard in entry["shards"]
    }


def entry_of(settings, identity, vocab_size, inputs, chosen):
    """Returns a set's entry in the manifest: a dict of JSON values.

    Args:
      settings: the `Settings`.
      identity: dict, see `identity_of`.
      vocab_size: number of tokens in the vocabulary.
      inputs: `Measure.inputs`, the files of the corpus.
      chosen: the finished `OutputSet`.
    """
    statistics = chosen.statistics
    shards = [{"file": os.path.basename(path), **chosen.finished[path]} for path in chosen.paths]
    totals = {key: sum(shard[key] for shard in shards) for key in ("documents", "records", "bytes")}
    return {
        "flags": dataclasses.asdict(settings),
        "identity": identity,
        "vocab_size": vocab_size,
        "inputs": inputs,
        "totals": totals,
        "shares": {
            "used": statistics.used_share,
            "masked": statistics.masked / statistics.tokens,
            "replaced": statistics.replaced / statistics.tokens,
            "kept": statistics.kept / statistics.tokens,
        },
        "statistics": statistics.to_dict(),
        "anomalies": dict(sorted(chosen.anomalies.items())),
        "shards": shards,
    }


def write_manifest(output_file, entry):
    """Writes a set's entry into the manifest of its folder; the entries of other sets stay.

    Raises:
      UserError: the manifest cannot be written.
    """
    path = manifest_path(output_file)
    with _alone(path):
        _write(path, {**read_manifest(path), os.path.basename(output_file): entry})


def remove_entry(output_file):
    """Removes a set's entry, if there is one, because its shards are about to be made.

    Raises:
      UserError: the manifest cannot be written.
    """
    path = manifest_path(output_file)
    with _alone(path):
        sets = read_manifest(path)
        if sets.pop(os.path.basename(output_file), None):
            _write(path, sets)


@contextlib.contextmanager
def _alone(path):
    """Lets other runs wait meanwhile: of two that read and write a manifest at once, one is lost.

    Remote manifests are not locked.
    """
    folder, name = os.path.split(path)
    try:
        with locks.held(os.path.join(folder, f".{name}.lock"), path, waits=True):
            yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def _write(path, sets):
    # By name: the bytes do not depend on which set was made first.
    manifest = {"format": FORMAT, "data_sets": dict(sorted(sets.items()))}
    files.write_text(path, json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
