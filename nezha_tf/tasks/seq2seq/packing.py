"""Packs pairs of source and target, truncated to lengths: [CLS] source [SEP] target [SEP]."""

import dataclasses
from typing import NamedTuple

import numpy as np

from nezha_tf.text.graph_tokenizer import GraphTokenizer
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


class Side(NamedTuple):
    """How one side of a pair is truncated.

    Attributes:
      name: "source", "target" or "prompt".
      special_tokens: how many of [CLS] and [SEP] belong to it.
      max_length: most tokens, special ones included.
      truncate: "tail" or "head", the end to cut off if it is longer.
    """

    name: str
    special_tokens: int
    max_length: int
    truncate: str

    def cut(self, ids):
        """Returns ids [n] without the tokens that do not fit."""
        room = self.max_length - self.special_tokens
        return ids[:room] if self.truncate == "tail" else ids[-room:]

    def check(self):
        """Raises a `UserError` if there is no room for a token."""
        if self.max_length <= self.special_tokens:
            special = "[CLS] and [SEP]" if self.special_tokens == 2 else "the final [SEP]"
            raise UserError(
                f"--max_{self.name}_length={self.max_length} leaves no room for a token: it counts "
                f"{special}, so it must be at least {self.special_tokens + 1}"
            )


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Packed pairs, one for each row, in the rows' order.

    Attributes:
      ids: list of int32 arrays: [CLS] source [SEP] target [SEP], or [CLS] source [SEP] if there
        is no target.
      target_starts: list of int, the place of the first token after the source's [SEP].
      truncated: {name of a side: number of truncated texts}.
    """

    ids: list[np.ndarray]
    target_starts: list[int]
    truncated: dict[str, int]

    def __len__(self):
        return len(self.ids)

    def first(self, count):
        """Returns the first `count` pairs as `Pairs`."""
        return dataclasses.replace(
            self, ids=self.ids[:count], target_starts=self.target_starts[:count]
        )

    def truncation(self):
        """Returns a clause on the truncated texts for the end of a message, or ""."""
        cut = [console.plural(number, side) for side, number in self.truncated.items() if number]
        return f"; too long, so truncated: {' and '.join(cut)}" if cut else ""


class Packing:
    """Tokenizes pairs and packs them."""

    def __init__(
        self,
        tokenizer,
        max_source_length,
        max_target_length,
        truncate_source="tail",
        truncate_target="tail",
    ):
        """Args:
          tokenizer: `FullTokenizer`.
          max_source_length: most tokens of a source, [CLS] and [SEP] included.
          max_target_length: most tokens of a target, the final [SEP] included.
          truncate_source: "tail" or "head", the end to cut off from longer sources.
          truncate_target: "tail" or "head", the end to cut off from longer targets.

        Raises:
          UserError: a length leaves no room for a token.
        """
        self._vocabulary = tokenizer.vocabulary
        self._tokenizer = GraphTokenizer(self._vocabulary, tokenizer.do_lower_case)
        self.source = Side("source", 2, max_source_length, truncate_source)
        self.target = Side("target", 1, max_target_length, truncate_target)
        self.source.check()
        self.target.check()

    @property
    def max_seq_length(self):
        """T: the most tokens of a pair."""
        return self.source.max_length + self.target.max_length

    def pack(self, rows):
        """Tokenizes and packs pairs.

        Args:
          rows: list of `data.rows.Row` with `src` and, if there is a target, `tgt`.

        Returns:
          `Pairs`.

        Raises:
          UserError: a text has no tokens (for example only control characters).
        """
        truncated = {"source": 0, "target": 0}
        cls_id, sep_id = self._vocabulary.cls_id, self._vocabulary.sep_id
        ids, starts = [], []
        sources = self._tokenized(rows, "src", self.source, truncated)
        targets = self._tokenized(rows, "tgt", self.target, truncated)
        for source, target in zip(sources, targets, strict=True):
            end = [] if target is None else [*target, sep_id]
            ids.append(np.array([cls_id, *source, sep_id, *end], np.int32))
            starts.append(len(source) + 2)
        return Pairs(ids, starts, truncated)

    def _tokenized(self, rows, column, side, truncated):
        """Yields the truncated ids [n] of a column, or None if it is missing; counts them."""
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
