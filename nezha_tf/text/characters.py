"""The characters that the originals drop, replace by a space or separate (tokenization.py)."""

import functools
import itertools
import re
import unicodedata

# The blocks that the originals call CJK: ideographs and compatibility ideographs. Kana and Hangul
# do not belong to them; they are separated by white space or split by WordPiece.
CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# ASCII characters that are symbols in Unicode and punctuation in the originals.
ASCII_SYMBOLS = "$+<=>^`|~"

# What neither shows nor gives a token: white space, control and format characters (Unicode's Z*, Cc
# and Cf; a test compares the ranges).
INVISIBLE_RANGES = (
    (0x0, 0x20),
    (0x7F, 0xA0),
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x1680, 0x1680),
    (0x180E, 0x180E),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x2064),
    (0x2066, 0x206F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
)
# What belongs to the character before it: marks, and format characters, which do not show.
_MARKS = ("Mn", "Mc", "Me", "Cf")
_JOINER, _SYMBOL = "\u200d", "So"  # a joiner joins two emoji
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_FLAG_LETTERS = ("\U0001f1e6", "\U0001f1ff")
_JAMO, _INNER_JAMO, _SYLLABLES = ("\u1100", "\u11ff"), ("\u1160", "\u11ff"), ("\uac00", "\ud7a3")
_VISIBLE = re.compile(f"[^{''.join(f'{chr(low)}-{chr(high)}' for low, high in INVISIBLE_RANGES)}]")

DROPPED, SPACE, ALONE, PUNCTUATION, ORDINARY = range(5)


@functools.cache
def kind_of(char):
    """Returns the kind of a character of the raw text.

    It is DROPPED (control characters, U+FFFD), SPACE, ALONE (CJK), PUNCTUATION or ORDINARY.
    """
    category = unicodedata.category(char)
    # The originals replace tab, newline, return and Zs by spaces, and then call str.split(), which
    # also splits at line and paragraph separators.
    if char in " \t\n\r" or category in ("Zs", "Zl", "Zp"):
        return SPACE
    if char == "\ufffd" or category in ("Cc", "Cf"):
        return DROPPED
    if any(low <= ord(char) <= high for low, high in CJK_RANGES):
        return ALONE
    return PUNCTUATION if is_punctuation(char) else ORDINARY


def is_blank(line):
    """Whether a line shows nothing and has no token: it parts documents."""
    return not _VISIBLE.search(line)


def is_punctuation(char):
    """Whether a character is punctuation: Unicode's categories P*, and ASCII symbols."""
    return char in ASCII_SYMBOLS or unicodedata.category(char).startswith("P")


@functools.lru_cache(maxsize=2**16)
def fold(text):
    """Lower-cases and strips accents in the originals' order: lower, NFD, drop Mn."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def is_one_character(text):
    """Whether a text is one character to a reader: a code point, and what belongs to it.

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
    return is_joined or category in _MARKS or _is_in(char, _SKIN_TONES)


def _is_in(char, bounds):
    return bounds[0] <= char <= bounds[1]


def common_characters():
    """Yields the characters of level 1 of GB 2312 and of Big5, in the order of their codes."""
    for encoding, leads, trails in (
        ("gb2312", range(0xB0, 0xD8), range(0xA1, 0xFF)),
        ("big5", range(0xA4, 0xC7), (*range(0x40, 0x7F), *range(0xA1, 0xFF))),
    ):
        for lead in leads:
            for trail in trails:
                try:
                    char = bytes((lead, trail)).decode(encoding)
                except UnicodeDecodeError:
                    continue  # the tables have gaps
                if kind_of(char) == ALONE:
                    yield char
