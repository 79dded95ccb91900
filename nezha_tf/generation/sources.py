"""Packs and pads sources and targets: [CLS] source [SEP] target [SEP], or [CLS] prompt."""

import dataclasses
from typing import NamedTuple

import numpy as np

from nezha_tf.text.graph_tokenizer import GraphTokenizer
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

# Lengths are rounded up to a multiple of this, so that few shapes are compiled.
LENGTH_STEP = 16


class Side(NamedTuple):
    """How one side of a pair is truncated."""

    name: str  # "source", "target" or "prompt"
    special_tokens: int  # how many of [CLS] and [SEP] belong to it
    max_length: int  # most tokens, special ones included
    truncate: str  # "tail" or "head", the end to cut off if it is longer

    def cut(self, ids):
        """Returns ids [n] without the tokens that do not fit."""
        room = self.max_length - self.special_tokens
        return ids[:room] if self.truncate == "tail" else ids[-room:]

    def check(self):
        """Raises a `UserError` if there is no room for a token."""
        if self.max_length <= self.special_tokens:
            flag = "max_target_length" if self.name == "target" else "max_source_length"
            raise UserError(
                f"--{flag}={self.max_length} leaves no room for a token: it counts [CLS] and [SEP] "
                f"of a {self.name}, so it must be at least {self.special_tokens + 1}"
            )


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Packed pairs, one for each row, in the rows' order.

    Attributes:
      ids: list of int32 arrays: [CLS] source [SEP] target [SEP]; without a target [CLS] source
        [SEP], or [CLS] prompt.
      target_starts: list of int, the place of the first token after the source or prompt.
      truncated: {name of a side: number of truncated texts}.
    """

    ids: list[np.ndarray]
    target_starts: list[int]
    truncated: dict[str, int]

    def __len__(self):
        return len(self.ids)

    def first(self, count):
        return dataclasses.replace(
            self, ids=self.ids[:count], target_starts=self.target_starts[:count]
        )

    def sides(self):
        """Returns a list of (ids of the source, ids of the target), lists of int."""
        parts = zip(self.ids, self.target_starts, strict=True)
        return [(ids[:start].tolist(), ids[start:].tolist()) for ids, start in parts]

    def truncation(self):
        """Returns a clause on the truncated texts for the end of a message, or ""."""
        cut = [console.plural(number, side) for side, number in self.truncated.items() if number]
        return f"; too long, so truncated: {' and '.join(cut)}" if cut else ""


class Packing:
    """Tokenizes pairs, or sources or prompts alone, and packs them."""

    def __init__(self, tokenizer, source, target=None):
        """The `Side` of targets is None if rows have none.

        Raises:
          UserError: a side has no room for a token.
        """
        self._vocabulary = tokenizer.vocabulary
        self._tokenizer = GraphTokenizer(self._vocabulary, tokenizer.do_lower_case)
        self._source, self._target = source, target
        for side in filter(None, (source, target)):
            side.check()

    def pack(self, rows):
        """Returns the `Pairs` of a list of `data.rows.Row` with `src` and, if there is one, `tgt`.

        Raises:
          UserError: a text has no tokens (for example only control characters).
        """
        cls_id, sep_id = self._vocabulary.cls_id, self._vocabulary.sep_id
        end = [sep_id] if self._source.special_tokens == 2 else []
        truncated = {side.name: 0 for side in filter(None, (self._source, self._target))}
        pairs = Pairs([], [], truncated)
        sources = self._tokenized(rows, "src", self._source, truncated)
        targets = self._tokenized(rows, "tgt", self._target, truncated)
        for source, target in zip(sources, targets, strict=True):
            source = [cls_id, *source, *end]
            target = [] if target is None else [*target, sep_id]
            pairs.ids.append(np.array(source + target, np.int32))
            pairs.target_starts.append(len(source))
        return pairs

    def _tokenized(self, rows, column, side, truncated):
        """Yields the truncated ids [n] of a column, or None if it is missing; counts them."""
        if side is None:
            yield from [None] * len(rows)
            return
        texts = [row.values.get(column, "") for row in rows]
        for row, tokens in zip(rows, self._tokenizer.ids_of(texts), strict=True):
            if column not in row.values:
                yield None
                continue
            if not len(tokens):
                raise UserError(f"{row.place}: {column} has no tokens; write a text")
            ids = side.cut(tokens)
            truncated[side.name] += len(ids) < len(tokens)
            yield ids


def rounded_up(length):
    """Returns the padded length for sources of at most `length` tokens."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def pad_left(sources, length):
    """Pads sources on the left, so that all end at the same place.

    Args:
      sources: B lists of ids.
      length: S.

    Returns:
      (source_ids, source_mask), int32 NumPy arrays [B, S].

    Raises:
      UserError: a source is empty or too long.
    """
    source_ids = np.zeros((len(sources), length), "int32")
    source_mask = np.zeros_like(source_ids)
    for row, source in enumerate(sources):
        if not 0 < len(source) <= length:
            raise UserError(
                f"source {row + 1} has {len(source)} tokens, but must have 1 to {length}"
            )
        source_ids[row, -len(source) :] = source
        source_mask[row, -len(source) :] = 1
    return source_ids, source_mask


def pad_right(targets, length):
    """Pads targets on the right; arguments and result are those of `pad_left`."""
    ids, mask = pad_left([target[::-1] for target in targets], length)
    return ids[:, ::-1].copy(), mask[:, ::-1].copy()
