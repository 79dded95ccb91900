"""What determines the bytes of shards, and which shards of it are there already."""

import dataclasses
import glob
import hashlib
import importlib.metadata
import os
import re

from nezha_tf import storage
from nezha_tf.errors import UserError
from nezha_tf.pretraining_data.shard_files import read_record, record_name

# Told in other words than by their values, which are long or say little.
_IN_WORDS = {
    "input_file": "of another text (--input_file, its order, or bytes that are not UTF-8)",
    "vocab_file": "with another vocabulary (--vocab_file)",
    "user_dict": "with another dictionary (--user_dict)",
    "segmenter": "with words of another segmenter (--segmenter), or of another version of it",
}


def identity_of(settings, measure):
    """Returns a dict of what determines the bytes, of JSON values, under the names of flags.

    Files are told by what is in them, not by their names; the segmenter by its version too.

    Args:
      settings: the `Settings`.
      measure: the `Measure` of the corpus.

    Raises:
      UserError: the vocabulary or the dictionary cannot be read.
    """
    text = f"crc32c {measure.crc32c}, {measure.training.count + measure.held_out.count} documents"
    identity = {"input_file": text, **dataclasses.asdict(settings)}
    for flag in ("vocab_file", "user_dict"):
        if identity[flag]:
            identity[flag] = digest(identity[flag], flag)
    with_words = settings.masking != "token"
    identity["segmenter"] = _version(settings.segmenter) if with_words else ""
    # Last, as it depends on the text where it is not given.
    identity["num_output_shards"] = identity.pop("num_output_shards")
    return identity


def finished_shards(output_file, names, identity):
    """Yields (file, record) of the shards that need not be made again.

    A finished shard has a record with this identity beside it and the size that the record
    says; its checksum is not looked at here, but by `tools/inspect_tfrecords.py --check`.

    Args:
      output_file: the name of the set.
      names: its shards.
      identity: dict as of `identity_of`.

    Raises:
      UserError: a file of the set's name was made otherwise, or has no record.
    """
    names = set(names)
    for path in files_of(output_file):
        record = read_record(path)
        if record is None:
            raise UserError(
                f"{path} is there and has no record {os.path.basename(record_name(path))} beside "
                "it; remove it, or choose another --output_file"
            )
        _refuse_other(path, record["identity"], identity)
        if path in names and storage.size(path) == record["bytes"]:
            yield path, record


def files_of(output_file):
    """Returns the files that are there of a set, one shard or many, in order."""
    stem, extension = os.path.splitext(output_file)
    many = re.compile(re.escape(stem) + r"-\d{5,}-of-\d{5,}" + re.escape(extension))
    candidates = storage.glob(f"{glob.escape(stem)}-*{glob.escape(extension)}")
    found = [path for path in candidates if many.fullmatch(path)]
    return sorted(found) + [output_file] * storage.exists(output_file)


def _refuse_other(path, made, identity):
    for flag, value in identity.items():
        if made.get(flag) == value:
            continue
        how = f"with --{flag}={made.get(flag)}, not {value}"
        if flag == "eval_share" and not (made.get(flag) and value):
            how = f"{'without' if value else 'with'} --eval_output_file"
        raise UserError(
            f"{path} was made {_IN_WORDS.get(flag, how)}; give the flags that it was made with, "
            "remove what is there, or choose another --output_file"
        )


def digest(path, flag):
    """Returns what tells a file's bytes from others, a str.

    Args:
      path: the file.
      flag: the flag that names it, for the error.

    Raises:
      UserError: it cannot be read.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            return "sha256 " + hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise UserError(f"cannot read --{flag}={path}: {error.strerror}") from error


def _version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package  # whoever needs it says what to install
