"""Tokenizes passages, and maps tokens to the characters of the raw text."""

import unicodedata
from typing import NamedTuple

import numpy as np


class Passage(NamedTuple):
    """A tokenized text of P tokens.

    Attributes:
      text: the raw text.
      ids: int32 [P].
      starts, ends: int32 [P], both rising: token p covers the characters text[starts[p]:ends[p]].
    """

    text: str
    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def characters_of(self, first, last):
        """Returns (start, end): the tokens `first` to `last` cover text[start:end]."""
        return int(self.starts[first]), int(self.ends[last])

    def tokens_of(self, start, end):
        """Returns (first, last) of the tokens that overlap text[start:end], or None."""
        inside = np.flatnonzero((self.ends > start) & (self.starts < end))
        return (int(inside[0]), int(inside[-1])) if len(inside) else None


def make_passage(text, tokenizer):
    """Tokenizes a text.

    Combining marks that lower-casing drops (accents in characters of their own) belong to the token
    before them, so that an answer keeps them.

    Args:
      text: str.
      tokenizer: `FullTokenizer`.

    Returns:
      `Passage`.
    """
    tokens = tokenizer.tokenize_with_offsets(text)
    ids = tokenizer.convert_tokens_to_ids([token.text for token in tokens])
    starts = [token.start for token in tokens]
    bounds = [*starts, len(text)][1:]
    ends = [_past_marks(text, p.end, bound) for p, bound in zip(tokens, bounds, strict=True)]
    return Passage(text, *(np.array(values, np.int32) for values in (ids, starts, ends)))


def _past_marks(text, end, bound):
    while end < bound and unicodedata.category(text[end]) == "Mn":
        end += 1
    return end
