"""What a reader sees as one character, which may be several code points."""

import itertools
import unicodedata

_JOINER = "\u200d"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_FLAG_LETTERS = ("\U0001f1e6", "\U0001f1ff")
_JAMO, _INNER_JAMO, _SYLLABLES = ("\u1100", "\u11ff"), ("\u1160", "\u11ff"), ("\uac00", "\ud7a3")
# Marks on a character, and format characters, which do not show.
_CATEGORIES = ("Mn", "Mc", "Me", "Cf")
_SYMBOL = "So"  # of emoji, too


def is_one_character(text):
    """Whether a text is one character: a code point, and what belongs to it.

    That are accents, the selector of an emoji's form, the keycap, skin tones, emoji that a joiner
    joins, the two letters of a flag, and the letters of a Hangul syllable. It is the grapheme
    cluster of Unicode's UAX #29, but takes any format character.
    """
    if len(text) == 2 and all(_is_in(char, _FLAG_LETTERS) for char in text):
        return True
    return bool(text) and all(itertools.starmap(_belongs, itertools.pairwise(text)))


def _belongs(before, char):
    if _is_in(char, _INNER_JAMO):
        return _is_in(before, _JAMO) or _is_in(before, _SYLLABLES)
    category = unicodedata.category(char)
    is_joined = before == _JOINER and category == _SYMBOL
    return is_joined or category in _CATEGORIES or _is_in(char, _SKIN_TONES)


def _is_in(char, bounds):
    return bounds[0] <= char <= bounds[1]
