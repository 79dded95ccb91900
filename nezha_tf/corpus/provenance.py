"""How examples were made: the identity of shards, and its comparison with the user's flags."""

import dataclasses
import hashlib
import importlib.metadata
import os
from typing import NamedTuple

from nezha_tf.corpus.shard_files import manifest_name, read_summary, shards_in
from nezha_tf.objectives.policies import UNMASKED
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


def identity_of(settings, measure):
    """Returns a dict of flag name to JSON value with all that determines the bytes of shards.

    Files are identified by their contents, not their names; the segmenter also by its version.
    `measure` is the `Measure` of the corpus. Raises a `UserError` if a file cannot be read.
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
    """Returns the part of the identity that another machine may see differently, a dict of str."""
    with_words = settings.masking != "token"
    return {
        "vocab_file": digest(settings.vocab_file, "vocab_file"),
        "user_dict": settings.user_dict and digest(settings.user_dict, "user_dict"),
        "segmenter": _version(settings.segmenter) if with_words else "",
    }


def digest(path, flag):
    """Returns a hash of the bytes of a file that a flag names, a str; may raise a `UserError`."""
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


class Provenance(NamedTuple):
    """What a program must know about examples; the defaults are BERT's.

    Summaries of unmasked examples do not count for `max_predictions_per_seq`: the program that
    masks them chooses it.
    """

    pair: str = "nsp"  # one of `packing.PAIRS`
    do_lower_case: bool = True
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20


def provenance_of(paths, vocab_file=None, dynamic_masking=None, **requested):
    """Returns the `Provenance` of examples, and checks that it agrees with the user's flags.

    Args:
      paths: TFRecord files.
      vocab_file: the vocabulary that the user names, or None.
      dynamic_masking: the policy that will mask the examples, or None.
      **requested: fields of `Provenance` that the user sets, or None. They are needed for files of
        other tools, which have no summaries, if they differ from the defaults.

    Raises:
      UserError: the files were made with other flags than the user's or with different flags, or
        the vocabulary cannot be read.
    """
    identities = {path: summary["identity"] for path, summary in _summaries(paths).items()}
    _require_unmasked(identities, dynamic_masking)
    values = {}
    for flag in Provenance._fields:
        path, made = _made_with(identities, flag)
        values[flag] = requested.get(flag) if path is None else made
        if requested.get(flag) not in (None, values[flag]):
            raise UserError(
                f"{path} was made with {_flag_text(flag, made)}, as the summary beside it says, "
                f"not with {_flag_text(flag, requested[flag])}; remove that flag"
            )
    path, made = _made_with(identities, "vocab_file")
    fault = _vocabulary_fault(made, vocab_file) if vocab_file else None
    if fault:
        raise UserError(f"{path} {fault}")
    return Provenance(**{flag: value for flag, value in values.items() if value is not None})


def fault_of_vocabulary(path, vocab_file):
    """Returns a message if the summary of a file names another vocabulary than the user, else None.

    Raises a `UserError` if the vocabulary or the summary cannot be read.
    """
    summary = read_summary(path) or {"identity": {}}
    return _vocabulary_fault(summary["identity"].get("vocab_file"), vocab_file)


def _vocabulary_fault(made, vocab_file):
    if made in (None, digest(vocab_file, "vocab_file")):
        return None
    return (
        f"was made with another vocabulary than {vocab_file}, so its ids mean other tokens; "
        "pass the --vocab_file that it was made with"
    )


def counts_of(paths):
    """Returns a dict of file to its number of records, by manifests and summaries.

    Files without a summary, and those that have another size than it says, are left out. Raises a
    `UserError` if a manifest or a summary cannot be read.
    """
    sizes = storage.sizes(paths)
    return {
        path: summary["records"]
        for path, summary in _summaries(paths).items()
        if summary.get("bytes") == sizes[path] and "records" in summary
    }


def in_manifests(paths):
    """Returns {path: its summary} of the TFRecord files that the manifests of their folders name.

    A manifest names a set only while all its shards are as it says, so one file tells what
    otherwise the summaries of all shards do. Raises a `UserError` if it cannot be read.
    """
    manifests = {name: shards_in(name) for name in set(map(manifest_name, paths))}
    summaries = {}
    for path in paths:
        shards, name = manifests[manifest_name(path)], os.path.basename(path)
        if name in shards:
            _, entry, shard = shards[name]
            summaries[path] = {**shard, "identity": entry["identity"]}
    return summaries


def _summaries(paths):
    """Returns {path: its summary}, from manifests or else beside the file, if there is one."""
    named = in_manifests(paths)
    summaries = {path: named.get(path) or read_summary(path) for path in paths}
    return {path: summary for path, summary in summaries.items() if summary}


def _require_unmasked(identities, dynamic_masking):
    for path, identity in identities.items():
        made = identity.get("masking", UNMASKED)
        if dynamic_masking and made != UNMASKED:
            share = identity.get("masked_lm_prob")
            raise UserError(
                f"{path} is masked already, with --masking={made} --masked_lm_prob={share}, as "
                f"the summary beside it says; remove --dynamic_masking={dynamic_masking}, or "
                "make the file again with --masking=none"
            )


def _made_with(identities, flag):
    """Returns (file, the flag's value) for the first file whose summary has it, or (None, None)."""
    first = made = None
    for path, identity in identities.items():
        # Unmasked examples have no predictions.
        is_unused = flag == "max_predictions_per_seq" and identity.get("masking") == UNMASKED
        if flag not in identity or is_unused:
            continue
        if first is None:
            first, made = path, identity[flag]
        elif identity[flag] != made:
            how = f"{_flag_text(flag, identity[flag])} and {_flag_text(flag, made)}"
            how = "other vocabularies" if flag == "vocab_file" else how
            raise UserError(f"{path} and {first} were made with {how}; name files of one kind")
    return first, made


def _flag_text(flag, value):
    return {True: f"--{flag}", False: f"--no{flag}"}.get(value, f"--{flag}={value}")
