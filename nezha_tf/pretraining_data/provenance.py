"""What examples were made with, as the records beside their files tell it."""

from typing import NamedTuple

from nezha_tf.data.corruption.policies import UNMASKED
from nezha_tf.errors import UserError
from nezha_tf.pretraining_data.identity import digest
from nezha_tf.pretraining_data.shard_files import read_record


class Provenance(NamedTuple):
    """What a program must know of examples; where nothing tells it, they are as BERT's.

    Attributes:
      pair: what the two segments are, one of `packing.PAIRS`.
      do_lower_case: whether the text was lower-cased.
      max_seq_length: T, the length of an example in pieces.
      max_predictions_per_seq: P, the most predictions of a masked example; of examples that are
        masked when they are read it is the reader's choice, and no record tells it.
    """

    pair: str = "nsp"
    do_lower_case: bool = True
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20


def provenance_of(paths, vocab_file=None, dynamic_masking=None, **said):
    """Returns the `Provenance` of examples, after a look at whether it is what the user says.

    Args:
      paths: TFRecord files.
      vocab_file: the vocabulary that is meant, or None.
      dynamic_masking: the policy by which the reader is to mask them, or None.
      **said: fields of `Provenance` as the user has them, or None; needed where no record is
        beside the files, as of those that another tool made, and they are not as BERT's.

    Raises:
      UserError: files were made otherwise than the user says, or than each other; or the
        vocabulary cannot be read.
    """
    identities = {path: record["identity"] for path in paths if (record := read_record(path))}
    _check_masking(identities, dynamic_masking)
    found = {}
    for flag in Provenance._fields:
        path, made = _told(identities, flag)
        found[flag] = said.get(flag) if path is None else made
        if said.get(flag) not in (None, found[flag]):
            raise UserError(
                f"{path} was made with {_written(flag, made)}, as the record beside it says, not "
                f"with {_written(flag, said[flag])}; leave that out"
            )
    path, made = _told(identities, "vocab_file")
    if path and vocab_file and made != digest(vocab_file, "vocab_file"):
        raise UserError(f"{path} {_of_another(vocab_file)}")
    return Provenance(**{flag: value for flag, value in found.items() if value is not None})


def _check_masking(identities, dynamic_masking):
    """Raises a `UserError` where examples are masked already that the reader is to mask."""
    for path, identity in identities.items():
        made = identity.get("masking", UNMASKED)
        if dynamic_masking and made != UNMASKED:
            share = identity["masked_lm_prob"]
            raise UserError(
                f"{path} is masked already, with --masking={made} --masked_lm_prob={share}, as "
                f"the record beside it says; leave --dynamic_masking={dynamic_masking} out, or "
                "make the file again with --masking=none"
            )


def fault_of_vocabulary(path, vocab_file):
    """Says that a file was made with another vocabulary, where the record beside it does; or None.

    Args:
      path: a TFRecord file.
      vocab_file: the vocabulary that is meant.

    Raises:
      UserError: the vocabulary cannot be read.
    """
    record = read_record(path) or {"identity": {}}
    made = record["identity"].get("vocab_file")
    return _of_another(vocab_file) if made not in (None, digest(vocab_file, "vocab_file")) else None


def _told(identities, flag):
    """Returns (file, what it was made with) of the first file that tells it, or (None, None).

    Args:
      identities: dict of file to what its record says, as of `identity_of`.
      flag: the flag that is asked for.

    Raises:
      UserError: another file was made otherwise.
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
            raise UserError(f"{path} and {first} were made with {how}; take files of one kind")
    return first, made


def _has_no_say(flag, identity):
    """Whether examples are the same whatever the flag: how many there are to be predicted."""
    return flag == "max_predictions_per_seq" and identity.get("masking") == UNMASKED


def _written(flag, value):
    """Returns a flag as it stands in a command."""
    return {True: f"--{flag}", False: f"--no{flag}"}.get(value, f"--{flag}={value}")


def _of_another(vocab_file):
    return (
        f"was made with another vocabulary than {vocab_file}, so that its ids mean other pieces; "
        "pass the --vocab_file that it was made with"
    )
