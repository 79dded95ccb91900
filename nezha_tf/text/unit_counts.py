"""Counts the basic tokens of much text, on arrays."""

import collections
import functools

import numpy as np

from nezha_tf.text import characters
from nezha_tf.text.tokenization import basic_tokens

_UNSEEN = 255
# The one character whose lower case depends on the letters around it.
_SIGMA = "Σ"


class UnitCounter:
    """Counts units: tokens of text whose basic tokens do not depend on what stands beside them.

    A CJK character is a unit, a punctuation mark is one, and so is a run of other characters
    without white space. There are few different units in a text, so only these need be split into
    basic tokens, see `basic_tokens_of`. A word with a capital sigma is a unit together with its
    punctuation, because the lower case of that letter depends on the whole word.
    """

    def __init__(self, do_lower_case):
        self._do_lower_case = do_lower_case
        self._kinds = np.full(0x110000, _UNSEEN, np.uint8)  # by code point

    def count(self, text):
        """Returns how often each unit is in a text that neither begins nor ends inside a word.

        Returns:
          (dict of CJK character or punctuation mark to its count, Counter of the other units).
        """
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        counts = np.bincount(codes)
        self._see(np.flatnonzero(counts))
        others = collections.Counter()
        if self._do_lower_case and _SIGMA in text:
            codes = codes.copy()
            others.update(self._cut_out_words_of_sigma(text, codes))
            counts = np.bincount(codes)
        others.update(self._runs(codes))
        others.pop("", None)
        present = np.flatnonzero(counts)
        kinds = self._kinds[present]
        present = present[(kinds == characters.ALONE) | (kinds == characters.PUNCTUATION)]
        by_code = zip(present.tolist(), counts[present].tolist(), strict=True)
        return {chr(code): count for code, count in by_code}, others

    def _see(self, codes):
        for code in codes[self._kinds[codes] == _UNSEEN].tolist():
            self._kinds[code] = characters.kind_of(chr(code))

    def _cut_out_words_of_sigma(self, text, codes):
        """Returns the words with a capital sigma; in `codes` spaces take their places."""
        kinds = self._kinds[codes]
        between = np.flatnonzero((kinds == characters.SPACE) | (kinds == characters.ALONE))
        borders = np.concatenate([[-1], between, [len(codes)]])
        ends = np.unique(np.searchsorted(borders, np.flatnonzero(codes == ord(_SIGMA))))
        words = []
        for end in ends.tolist():
            word = slice(borders[end - 1] + 1, borders[end])
            words.append(text[word])
            codes[word] = ord(" ")
        return words

    def _runs(self, codes):
        """Returns the runs of ordinary and dropped characters; the last one may be ""."""
        kinds = self._kinds[codes]
        inside = (kinds == characters.ORDINARY) | (kinds == characters.DROPPED)
        kept = inside.copy()
        kept[1:] |= inside[:-1]  # the place behind a run gets a space
        joined = np.where(inside, codes, np.uint32(ord(" ")))[kept]
        return joined.tobytes().decode("utf-32-le").split(" ")


def basic_tokens_of(units, do_lower_case):
    """Splits units, a dict of unit to its count, into basic tokens.

    Returns:
      (Counter of the basic tokens that are CJK characters, Counter of the other basic tokens).
    """
    cjk, others = collections.Counter(), collections.Counter()
    for unit, count in units.items():
        if unit.isascii() and unit.isalnum():
            others[unit.lower() if do_lower_case else unit] += count
            continue
        find = _basic_tokens_of_character if len(unit) == 1 else _basic_tokens
        for basic_token in find(unit, do_lower_case):
            is_cjk = characters.kind_of(basic_token[0]) == characters.ALONE
            (cjk if is_cjk else others)[basic_token] += count
    return cjk, others


def _basic_tokens(unit, do_lower_case):
    return tuple(basic_token.text for basic_token in basic_tokens(unit, do_lower_case))


# A builder asks for the same characters after each part of a text.
_basic_tokens_of_character = functools.cache(_basic_tokens)
