"""Finds out how examples were made, from the summaries beside their files."""

import os
from typing import NamedTuple

from nezha_tf.corpus.identity import digest
from nezha_tf.corpus.manifest import manifest_path, shards_named
from nezha_tf.corpus.shard_files import read_record
from nezha_tf.objectives.policies import UNMASKED
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


class Provenance(NamedTuple):
    """What a program must know about examples; the defaults are BERT's.

    Attributes:
      pair: the kind of the two segments, one of `packing.PAIRS`.
      do_lower_case: whether the text was lower-cased.
      max_seq_length: T, the length of an example in tokens.
      max_predictions_per_seq: P, the most predictions in a masked example. Summaries of unmasked
        examples do not count for it: the program that masks them chooses it.
    """

    pair: str = "nsp"
    do_lower_case: bool = True
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20


def provenance_of(paths, vocab_file=None, dynamic_masking=None, **said):
    """Returns the `Provenance` of examples, and checks that it agrees with the user's flags.

    Args:
      paths: TFRecord files.
      vocab_file: the vocabulary that the user names, or None.
      dynamic_masking: the policy that will mask the examples, or None.
      **said: fields of `Provenance` that the user sets, or None. They are needed for files of
        other tools, which have no summaries, if they differ from the defaults.

    Raises:
      UserError: the files were made with other flags than the user's or with different flags, or
        the vocabulary cannot be read.
    """
    identities = {path: record["identity"] for path, record in _records(paths).items()}
    _check_masking(identities, dynamic_masking)
    found = {}
    for flag in Provenance._fields:
        path, made = _told(identities, flag)
        found[flag] = said.get(flag) if path is None else made
        if said.get(flag) not in (None, found[flag]):
            raise UserError(
                f"{path} was made with {_written(flag, made)}, as the summary beside it says, not "
                f"with {_written(flag, said[flag])}; remove that flag"
            )
    path, made = _told(identities, "vocab_file")
    if path and vocab_file and made != digest(vocab_file, "vocab_file"):
        raise UserError(f"{path} {_of_another(vocab_file)}")
    return Provenance(**{flag: value for flag, value in found.items() if value is not None})


def counts_of(paths):
    """Returns a dict of file to its number of records, by manifests and summaries.

    Args:
      paths: TFRecord files. Those without a summary, and those that have another size than it
        says, are not in the result.

    Raises:
      UserError: a manifest or a summary cannot be read.
    """
    sizes = storage.sizes(paths)
    return {
        path: record["records"]
        for path, record in _records(paths).items()
        if record.get("bytes") == sizes[path] and "records" in record
    }


def in_manifests(paths):
    """Returns {path: its summary} of the files that the manifests of their folders name.

    A manifest names a set only while all its shards are as it says, so one file tells what
    otherwise the summaries of all shards do.

    Args:
      paths: TFRecord files.

    Raises:
      UserError: a manifest cannot be read.
    """
    named = {path: shards_named(path) for path in set(map(manifest_path, paths))}
    found = {}
    for path in paths:
        shards, name = named[manifest_path(path)], os.path.basename(path)
        if name in shards:
            _, entry, shard = shards[name]
            found[path] = {**shard, "identity": entry["identity"]}
    return found


def _records(paths):
    """Returns {path: its summary}, from manifests or else beside the file, if there is one."""
    named = in_manifests(paths)
    found = {path: named.get(path) or read_record(path) for path in paths}
    return {path: record for path, record in found.items() if record}


def _check_masking(identities, dynamic_masking):
    """Raises a `UserError` if the reader should mask examples that are masked already."""
    for path, identity in identities.items():
        made = identity.get("masking", UNMASKED)
        if dynamic_masking and made != UNMASKED:
            share = identity.get("masked_lm_prob")
            raise UserError(
                f"{path} is masked already, with --masking={made} --masked_lm_prob={share}, as "
                f"the summary beside it says; remove --dynamic_masking={dynamic_masking}, or "
                "make the file again with --masking=none"
            )


def fault_of_vocabulary(path, vocab_file):
    """Returns a message if the summary of a file names another vocabulary, else None.

    Args:
      path: a TFRecord file.
      vocab_file: the vocabulary that the user names.

    Raises:
      UserError: the vocabulary cannot be read.
    """
    record = read_record(path) or {"identity": {}}
    made = record["identity"].get("vocab_file")
    return _of_another(vocab_file) if made not in (None, digest(vocab_file, "vocab_file")) else None


def _told(identities, flag):
    """Returns (file, the flag's value) for the first file whose summary has it, or (None, None).

    Args:
      identities: dict of file to the identity in its summary, see `identity_of`.
      flag: the name of the flag.

    Raises:
      UserError: another file was made with another value.
    """
    told = [
        (path, identity[flag])
        for path, identity in identities.items()
        if flag in identity and not _has_no_say(flag, identity)
    ]
    first, made = told[0] if told else (None, None)
    for path, value in told:
        if value != made:
            how = (
                "other vocabularies"
                if flag == "vocab_file"
                else f"{_written(flag, value)} and {_written(flag, made)}"
            )
            raise UserError(f"{path} and {first} were made with {how}; name files of one kind")
    return first, made


def _has_no_say(flag, identity):
    """Whether the flag has no effect on these examples: unmasked ones have no predictions."""
    return flag == "max_predictions_per_seq" and identity.get("masking") == UNMASKED


def _written(flag, value):
    """Returns a flag in the form of a command line."""
    return {True: f"--{flag}", False: f"--no{flag}"}.get(value, f"--{flag}={value}")


def _of_another(vocab_file):
    return (
        f"was made with another vocabulary than {vocab_file}, so its ids mean other tokens; "
        "pass the --vocab_file that it was made with"
    )
