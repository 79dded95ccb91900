"""Texts of any characters and of those that tokenizers treat specially, and strategies for them."""

import random

from hypothesis import strategies as st

from nezha_tf.text.vocabulary import SPECIAL_TOKENS

# Letters with precomposed and combining accents, syllables that decompose into letters, a sigma
# whose lower case depends on its place, capitals that become longer, signs that fold to
# punctuation, marks that are reordered, dropped and blank characters, wide characters, kana,
# emoji, and ideographs of all blocks.
PARTS = (
    *"中文，。、（）《》“”…—abzABZ019.,:;!?'\"()[]{}-/@#$%^&*+=<>|~`_ ",
    *("长江", "iPhone", "Straße", "café", "cafe\u0301", "unbelievable", "3.14", "I'll", "TCP/IP"),
    *("한국어", "한a", "각\u0301", "ΟΔΥΣΣΕΥΣ", "ΑΣ.", "Σ", "ς", "İ", "ǅ", "ŉ", "ﬁ", "ẞ", "Ω", "K"),
    *("≠", "≮", "\u037e", "\u1fef", "\u0387", "\u0345", "\u0301", "\u0323", "\u302e", "\U0001d165"),
    *("\0", "\t", "\n", "\r\n", "\x1c", "\x85", "\xa0", "\xad", "\u200b", "\u2028", "\u3000"),
    *("\ufeff", "\ufffd", "\ue000", "ＡＢ１２，", "ﾊﾟ", "カー", "ひら", "😀", "👨\u200d👩", "👍🏽"),
    *("龘", "㐀", "\U00020000", "\uf900", "\U0002f800", "⼀", "々", "℃", "①", "½", "ก็", "שׁ"),
    *("x" * 199, "é" * 67, "か" * 201, "[unused1]", "##a", "##", *SPECIAL_TOKENS),
)
ANY_CHARACTER = st.characters(exclude_categories=["Cs"])


def texts(characters=ANY_CHARACTER, max_parts=12):
    """Returns a strategy for str: characters of a strategy, mixed with the parts above."""
    return st.lists(st.sampled_from(PARTS) | characters, max_size=max_parts).map("".join)


def odd_strings():
    """Returns strings of all characters that tokenizers treat specially, and long tokens."""
    ranges = ((0x20, 0x250), (0x300, 0x530), (0x2000, 0x2070), (0x3000, 0x3100))
    ranges += ((0x4E00, 0x4E40), (0xFF00, 0xFFF0), (0xAC00, 0xAC10), (0x0E01, 0x0E50))
    alphabet = [chr(code) for low, high in ranges for code in range(low, high)]
    alphabet += list("\0\t\n\r\x1c\x85\xad\u2028\ufeff\ufffd\ue000\U0001f600\U00020001\u302e")
    rng = random.Random(0)
    strings = ["".join(rng.choices(alphabet, k=rng.randint(0, 50))) for _ in range(2000)]
    for char in "aяกか":
        strings += [char * 200, char * 201, char * 300 + "。x", "中" + char * 201 + " " + char]
    return [*strings, "", " ", "中" * 500, "b" * 199 + "é", "b" * 200 + "é", "x" * 5000]
