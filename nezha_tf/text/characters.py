"""Which characters the originals drop, replace by a space or separate (tokenization.py)."""

import functools
import unicodedata

# The blocks that the originals call CJK: ideographs and compatibility ideographs, but neither
# kana nor Hangul, which are written with white space or split by WordPiece.
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
# ASCII that Unicode calls a symbol and the originals treat as punctuation.
ASCII_SYMBOLS = "$+<=>^`|~"

DROPPED, SPACE, ALONE, PUNCTUATION, ORDINARY = range(5)


@functools.cache
def kind_of(char):
    """Returns what becomes of one character of the raw text.

    DROPPED (control characters, U+FFFD), SPACE, ALONE (CJK), PUNCTUATION or ORDINARY.
    """
    category = unicodedata.category(char)
    # The originals blank out tab, newline, return and Zs, then call str.split(), which parts at
    # line and paragraph separators as well.
    if char in " \t\n\r" or category in ("Zs", "Zl", "Zp"):
        return SPACE
    if char == "\ufffd" or category in ("Cc", "Cf"):
        return DROPPED
    if any(low <= ord(char) <= high for low, high in CJK_RANGES):
        return ALONE
    return PUNCTUATION if is_punctuation(char) else ORDINARY


def is_punctuation(char):
    """Whether a character stands alone as punctuation: Unicode's P*, and ASCII symbols."""
    return char in ASCII_SYMBOLS or unicodedata.category(char).startswith("P")


@functools.lru_cache(maxsize=2**16)
def fold(text):
    """Lower-cases and strips accents: lower, NFD, drop Mn, in the originals' order."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
