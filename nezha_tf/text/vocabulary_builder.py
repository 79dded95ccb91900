"""Builds a WordPiece vocabulary: counts the basic tokens of much text, and chooses the tokens."""

import collections
import functools
import string
from typing import NamedTuple

import numpy as np

from nezha_tf.text import characters
from nezha_tf.text.piece_learner import JOINER, PieceLearner, of_common_characters
from nezha_tf.text.tokenization import basic_tokens
from nezha_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK
from nezha_tf.util.errors import UserError

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
        """Counts the units of a text that neither begins nor ends inside a word.

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
        """Returns the words with a capital sigma, and puts spaces in their places in `codes`."""
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

    Returns a Counter of those that are CJK characters, and a Counter of the others.
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


# The first tokens of BERT's Chinese vocabulary, with the same ids.
SPECIALS = (PAD, *(f"[unused{n}]" for n in range(1, 100)), UNK, CLS, SEP, MASK)
PUNCTUATION = string.punctuation + "，。、；：？！“”‘’（）《》〈〉【】「」『』〔〕—…·～￥％＋－×÷°℃"
# For a size that follows from the text: at most one of so many Chinese characters is left out
# (99.95 % are covered), and there are no more tokens than in the published Chinese vocabularies.
CHARACTERS_FOR_ONE_LEFT_OUT = 2_000
MOST_TOKENS = 21_128


class Coverage(NamedTuple):
    """The shares of a text's CJK characters that are tokens, and of other words of such letters.

    None where the text has none.
    """

    chinese: float | None
    other: float | None


class VocabularyBuilder:
    """Makes the tokens of a vocabulary from the counts of a text.

    The order is: BERT's special tokens, CJK characters by falling frequency, common characters
    and the tokens of `include`, punctuation and ASCII, and the tokens that are learned from words
    that are not Chinese. There are no `##` tokens of Chinese characters, because the tokenizer
    never needs them.

    Without `vocab_size` the text decides. `min_character_count` becomes the count of the rarest CJK
    character that is needed to cover 99.95 % of them, unless it is higher anyway. There is room for
    as many learned tokens as the learner finds with this count as its threshold, but in all for no
    more than `MOST_TOKENS`. The same numbers as arguments give the same tokens.

    Attributes:
      vocab_size, min_character_count: the numbers in use; `build` sets those that the text decides.
    """

    def __init__(
        self,
        vocab_size=None,
        *,
        do_lower_case=True,
        min_character_count=2,
        common_characters=False,
        include=(),
    ):
        """Takes what `VocabularySettings` says, and a list of tokens to include in any case.

        Raises:
          UserError: `vocab_size` is too small for the tokens that every vocabulary has.
        """
        self.vocab_size = vocab_size
        self.min_character_count = min_character_count
        self._do_lower_case = do_lower_case
        alphabet = string.ascii_lowercase + string.digits
        alphabet += "" if do_lower_case else string.ascii_uppercase
        common = characters.common_characters() if common_characters else ()
        inner = (JOINER + char for char in alphabet)
        self._fixed = [*common, *include, *PUNCTUATION, *alphabet, *inner]
        self._cjk, self._words = collections.Counter(), collections.Counter()
        self._units = collections.Counter()
        self._needed = {*SPECIALS, *self._fixed}
        self._require_room()

    def add(self, single, others):
        """Adds what `UnitCounter.count` has found in a part of the text; the order is free.

        Raises:
          UserError: `vocab_size` is too small for the characters of the parts so far.
        """
        self._units.update(others)
        self._add_tokens(single)

    def build(self):
        """Returns (list of tokens, their `Coverage`).

        Raises:
          UserError: there is no text, or `vocab_size` is too small for its characters.
        """
        self._add_tokens(self._units)
        self._units.clear()
        if not self._cjk and not self._words:
            raise UserError("there is no text to build a vocabulary from")
        learner = PieceLearner(_by_frequency(self._words)) if self._words else None
        if self.vocab_size is None:
            self._decide(learner)
        tokens = self._tokens()
        if learner and len(tokens) < self.vocab_size:
            learned = set(_learned(learner, self.vocab_size - len(tokens))) - set(tokens)
            tokens += sorted(token for token in learned if not _is_inner_punctuation(token))
        return tokens, self._coverage(set(tokens))

    def _add_tokens(self, units):
        cjk, words = basic_tokens_of(units, self._do_lower_case)
        self._cjk.update(cjk)
        self._words.update(words)
        self._needed.update(c for c in cjk if self._cjk[c] >= self.min_character_count)
        self._require_room()

    def _require_room(self):
        """More text never needs fewer tokens, so this is told before all of it is counted."""
        needed = len(self._needed)
        if self.vocab_size is not None and needed > self.vocab_size:
            raise UserError(
                f"--vocab_size={self.vocab_size} is too small: at least {needed} tokens are "
                "needed; raise it, or --min_character_count, or leave --vocab_size out: then the "
                "text decides"
            )

    def _tokens(self):
        least = self.min_character_count
        chosen = (char for char, count in _by_frequency(self._cjk) if count >= least)
        # dict.fromkeys drops duplicates and keeps the order.
        return list(dict.fromkeys([*SPECIALS, *chosen, *self._fixed]))

    def _coverage(self, tokens):
        def has_all(word):
            inner = (JOINER + char for char in word[1:])
            return word in tokens or (word[0] in tokens and tokens.issuperset(inner))

        return Coverage(_share(self._cjk, tokens.__contains__), _share(self._words, has_all))

    def _decide(self, learner):
        least, left = 0, self._cjk.total()
        for _, count in _by_frequency(self._cjk):
            if left * CHARACTERS_FOR_ONE_LEFT_OUT <= self._cjk.total():
                break
            least = count
            left -= count
        # Characters of the same count are all taken.
        self.min_character_count = max(least, self.min_character_count)
        needed = len(self._tokens())
        learned = len(learner.at(self.min_character_count)) if learner else 0
        self.vocab_size = max(needed, min(needed + learned, MOST_TOKENS))


def _by_frequency(counter):
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _learned(learner, room):
    """Returns the tokens of a learner, at most `room`.

    Each character of the words makes two tokens. If there is no room for all of them, nothing could
    be learned, not even frequent words of common letters. So words with rarer characters are left
    out then, until characters take no more than half of the room.
    """
    if 2 * len(learner.alphabet) > room:
        counts = of_common_characters(learner.words, room // 4)
        if not counts:
            return []
        learner = PieceLearner(counts)
    return learner.within(room)


def _share(counter, is_covered):
    if not counter:
        return None
    return sum(count for key, count in counter.items() if is_covered(key)) / counter.total()


def _is_inner_punctuation(token):
    return token.startswith(JOINER) and any(map(characters.is_punctuation, token[2:]))
