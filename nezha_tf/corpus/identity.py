"""The identity of shards, which determines their bytes, and the search for finished shards."""

import dataclasses
import glob
import hashlib
import importlib.metadata
import os
import re

from nezha_tf.corpus.shard_files import FINISHED, read_record, record_name
from nezha_tf.util import forms, storage
from nezha_tf.util.errors import UserError

# The flags whose meaning another machine may see differently.
OF_FILES = ("vocab_file", "user_dict", "segmenter")
# Messages for values that are too long or too unclear to print.
_IN_WORDS = {
    "input_file": "from another text (--input_file, the files' order, or bytes that are not UTF-8)",
    "vocab_file": "with another vocabulary (--vocab_file)",
    "user_dict": "with another dictionary (--user_dict)",
    "segmenter": "with another segmenter (--segmenter) or another version of it",
}


def identity_of(settings, measure):
    """Returns a dict of flag name to JSON value with all that determines the bytes of shards.

    Files are identified by their contents, not their names; the segmenter also by its version.

    Args:
      settings: the `Settings`.
      measure: the `Measure` of the corpus.

    Raises:
      UserError: the vocabulary or the dictionary cannot be read.
    """
    text = f"crc32c {measure.crc32c}, {measure.training.count + measure.held_out.count} documents"
    identity = {"input_file": text, **dataclasses.asdict(settings), **identity_of_files(settings)}
    # The text that they make of the files is known by its checksum.
    for name in ("encoding", "text_fields", "split_sentences"):
        del identity[name]
    # It comes last, because its default depends on the text, which should be reported first.
    identity["num_output_shards"] = identity.pop("num_output_shards")
    return identity


def identity_of_files(settings):
    """Returns the part of the identity that another machine may see differently.

    Args:
      settings: the `Settings`.

    Returns:
      Dict of the flags in `OF_FILES` to what they stand for, a str each.

    Raises:
      UserError: the vocabulary or the dictionary cannot be read.
    """
    with_words = settings.masking != "token"
    return {
        "vocab_file": digest(settings.vocab_file, "vocab_file"),
        "user_dict": settings.user_dict and digest(settings.user_dict, "user_dict"),
        "segmenter": _version(settings.segmenter) if with_words else "",
    }


def finished_shards(output_file, names, identity):
    """Yields (file, summary) of the finished shards, which need not be made again.

    Beside a finished shard there is a summary with this identity and the file's size. Its
    checksum is not compared here, but by `tools/inspect_tfrecords.py --check`.

    Args:
      output_file: the set's file name, before the numbers of shards are added.
      names: the files of its shards.
      identity: dict, see `identity_of`.

    Raises:
      UserError: a file with the set's name was made with other flags, or has no summary.
    """
    names = set(names)
    for path in files_of(output_file):
        record = read_record(path)
        if record is None:
            raise UserError(
                f"{path} is there, but not its summary {os.path.basename(record_name(path))}; "
                "remove the file, or choose another --output_file"
            )
        forms.require(record, FINISHED, record_name(path))
        _refuse_other(path, record["identity"], identity)
        if path in names and storage.size(path) == record["bytes"]:
            yield path, record


def files_of(output_file):
    """Returns the existing files of a set, whatever its number of shards, sorted."""
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
            f"{path} was made {_IN_WORDS.get(flag, how)}; pass the flags that it was made with, "
            "remove the old files, or choose another --output_file"
        )


def digest(path, flag):
    """Returns a hash of a file's bytes, a str.

    Args:
      path: the file.
      flag: the flag that names it, for the error.

    Raises:
      UserError: the file cannot be read.
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
        return package  # the code that imports it reports what to install
