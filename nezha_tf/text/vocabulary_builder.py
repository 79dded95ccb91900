"""Builds a WordPiece vocabulary from a corpus: Chinese characters, and learned tokens."""

import collections
import string
from typing import NamedTuple

from nezha_tf.text import characters
from nezha_tf.text.piece_learner import JOINER, PieceLearner, of_common_characters
from nezha_tf.text.unit_counts import basic_tokens_of
from nezha_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK
from nezha_tf.util.errors import UserError

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

    Their order is: BERT's special tokens, CJK characters by falling frequency, common characters
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
        """Args:
          vocab_size: bound on the number of tokens, or None.
          do_lower_case: see `FullTokenizer`, which must use the same value.
          min_character_count: rarer CJK characters are left out.
          common_characters: whether to add the characters of GB 2312 level 1 (3,755 simplified
            ones) and Big5 level 1 (5,401 traditional ones).
          include: tokens to add in any case.

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
        """Counts the basic tokens of units, and the tokens that these make necessary."""
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
    """Whether a token is punctuation inside a basic token, which no basic token contains."""
    return token.startswith(JOINER) and any(map(characters.is_punctuation, token[2:]))
