"""The vocabulary, which the tokenizers in Python and in the graph share."""

import os
import re
from collections.abc import Iterable
from typing import Self

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
# Tokens without a text, which programs may use as they like, for example as sentinels.
UNUSED_TOKEN = re.compile(r"\[unused(\d+)\]")
LONGEST_TOKEN = 256  # bytes; tensorflow-text takes no longer one


class Vocabulary:
    """Tokens and their ids.

    `tokens` is a list of V str, where a token's index is its id. `pad_id`, `cls_id`, `sep_id` and
    `mask_id` are the ids of special tokens.
    """

    def __init__(self, tokens: Iterable[str], source: str = "the vocabulary"):
        """Takes the tokens in the order of their ids, and the name for error messages.

        Raises:
          UserError: one of the five special tokens is missing.
        """
        self.tokens = list(tokens)
        # As in the originals' load_vocab, the id of a duplicate token is that of the last one.
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        missing = [token for token in SPECIAL_TOKENS if token not in self._ids]
        if missing:
            raise UserError(
                f"{source} lacks {', '.join(missing)}; add a line for each, or pass the "
                "vocabulary that belongs to the model"
            )
        self.pad_id, _, self.cls_id, self.sep_id, self.mask_id = self.ids_of(SPECIAL_TOKENS)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a `vocab.txt`: one token per line; white space around it is removed.

        Raises:
          UserError: the file is missing, is not UTF-8 or has a token that is too long (with the
            line number), or lacks special tokens.
        """
        try:
            with storage.open_binary(path, "rb") as file:
                lines = file.read().split(b"\n")
        except OSError as error:
            raise UserError(f"cannot read vocabulary {path}: {error.strerror}") from error
        if lines[-1] == b"":
            lines.pop()
        tokens = []
        for number, line in enumerate(lines, start=1):
            try:
                # A byte order mark does not belong to the first token.
                token = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise UserError(
                    f"vocabulary {path}, line {number}: not UTF-8; convert the file"
                ) from error
            if len(token.encode()) > LONGEST_TOKEN:
                raise UserError(
                    f"vocabulary {path}, line {number}: a token has more than {LONGEST_TOKEN} "
                    "bytes; is this file a vocabulary?"
                )
            tokens.append(token)
        return cls(tokens, source=f"vocabulary {path}")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def ids_of(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens as a list of int; unknown tokens get the id of [UNK]."""
        unknown = self._ids[UNK]
        return [self._ids.get(token, unknown) for token in tokens]

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens of ids (0 to V - 1) as a list; a larger one raises IndexError."""
        return [self.tokens[index] for index in ids]


def check_vocabulary(config, vocabulary):
    """Raises a `UserError` if a vocabulary has more tokens than a model has rows."""
    if len(vocabulary) > config.vocab_size:
        raise UserError(
            f"the vocabulary has {len(vocabulary)} tokens and the model {config.vocab_size} rows "
            f"(vocab_size), none for {vocabulary.tokens[config.vocab_size]!r} and what follows; "
            "take the vocabulary that belongs to the model"
        )
