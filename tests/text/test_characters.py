"""What readers see as one character."""

import pytest

from nezha_tf.text.characters import is_one_character

# Of emoji-test.txt and GraphemeBreakTest.txt of Unicode, and of Chinese texts.
ONE = ("李", " ", "\U00020bb7", "❤\ufe0f", "e\u0301", "1\ufe0f\u20e3", "👍🏽", "🇨🇳", "\u0301", "नि")
ONE += (
    "👨\u200d👩\u200d👧\u200d👦",
    "🏴\U000e0067\U000e0062\U000e007f",
    "葛\U000e0100",
    "か\u3099",
)
ONE += ("\u1112\u1161\u11ab",)
SEVERAL = ("", "李白", "❤❤", "a1", "科0", "🇨🇳🇺", "🇨李", "👩👧", "ab\u0301", "가나", "\U00020bb7李")
SEVERAL += ("李\u1161", "李\u200d白", "a\u11ab")


@pytest.mark.parametrize("texts, right", ((ONE, True), (SEVERAL, False)))
def test_characters_of_several_code_points(texts, right):
    assert [text for text in texts if is_one_character(text) != right] == []
