"""The characters that the originals drop, replace by a space or separate (tokenization.py)."""

import functools
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
