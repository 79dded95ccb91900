"""Tokens and characters of odd texts, in both directions."""

import random

import pytest
from conftest import RESOURCES

from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.reading_comprehension.data import passages_of
from nezha_tf.text import characters
from nezha_tf.text.tokenization import FullTokenizer

# Precomposed and combining accents, Hangul that decomposes into letters, characters that are
# dropped, wide spaces, emoji with modifiers.
PARTS = [*"中文，。、.-ab1 \t\n長éßİ한각\u200b\ufffd　", "e\u0301", "😀\ufe0f", "o\u0323\u0302"]
PARTS += ["Straße", "unbelievable", "3.14", "x" * 220]


@pytest.fixture(scope="module", params=(True, False))
def reader(request):
    return TextReader(FullTokenizer(RESOURCES / "vocab.txt", do_lower_case=request.param))


def texts(count):
    rng = random.Random(5)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 15))) for _ in range(count)]


def is_kept(char):
    return characters.kind_of(char) not in (characters.SPACE, characters.DROPPED)


def test_stretches_of_tokens_come_back(reader):
    for passage in passages_of(texts(150), reader):
        text, count = passage.text, len(passage.ids)
        for first in range(count):
            for last in range(first, min(first + 4, count)):
                start, end = passage.characters_of(first, last)
                assert text[start:end] and text[start:end] == text[start:end].strip()
                again = passage.tokens_of(start, end)
                assert again[0] <= first and again[1] >= last
                assert passage.characters_of(*again) == (start, end)


def test_stretches_of_characters_are_widened_to_tokens_and_no_further(reader):
    rng = random.Random(6)
    for passage in passages_of(texts(150), reader):
        text = passage.text
        start = rng.randrange(len(text))
        end = rng.randint(start + 1, len(text))
        inside = passage.tokens_of(start, end)
        if inside is None:
            assert not any(map(is_kept, text[start:end].rstrip("\ufe0f\u0301\u0302\u0323")))
            continue
        first, last = inside
        widened = passage.characters_of(first, last)
        kept = [place for place in range(start, end) if is_kept(text[place])]
        assert all(widened[0] <= place < widened[1] for place in kept)
        # The first and the last token overlap the span, and no other tokens do.
        assert passage.ends[first] > start and passage.starts[last] < end
        assert first == 0 or passage.ends[first - 1] <= start
        assert last + 1 == len(passage.ids) or passage.starts[last + 1] >= end


def test_marks_belong_to_their_letters():
    reader = TextReader(FullTokenizer(RESOURCES / "vocab.txt", do_lower_case=True))
    text = "在 cafe\u0301 里"
    (passage,) = passages_of([text], reader)
    first, last = passage.tokens_of(2, 4)
    assert passage.characters_of(first, len(passage.ids) - 2) == (2, 7)
    assert text[2:7] == "cafe\u0301" and last <= len(passage.ids) - 2
