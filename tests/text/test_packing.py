"""Truncation of pairs against the simple loop, and the packed result."""

import numpy as np
import pytest

from nezha_tf.text.packing import TextPacking, truncated_lengths
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError


def token_by_token(first, second, room):
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_every_small_pair_is_cut_as_token_by_token():
    for first in range(12):
        for second in range(12):
            for room in range(2, 24):
                expected = token_by_token(first, second, room)
                assert truncated_lengths(first, second, room) == expected, (first, second, room)


def test_what_stands_where():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *"abcdef"])
    pack = TextPacking(vocabulary, 8, is_pair=True)
    ids, segments = pack(np.array([5, 6]), np.array([7]))
    assert vocabulary.tokens_of(ids) == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert segments.tolist() == [0, 0, 0, 0, 1, 1] and pack.num_truncated == 0
    ids, segments = pack(np.array([5, 6, 7, 8]), np.array([9, 10, 5]))
    assert vocabulary.tokens_of(ids) == ["[CLS]", *"abc", "[SEP]", "e", "f", "[SEP]"]
    assert segments.tolist() == [0] * 5 + [1] * 3 and pack.num_truncated == 1
    assert ids.dtype == segments.dtype == np.int32
    pack = TextPacking(vocabulary, 4, is_pair=False)
    ids, segments = pack(np.array([5, 6, 7]))
    assert vocabulary.tokens_of(ids) == ["[CLS]", "a", "b", "[SEP]"]
    assert segments.tolist() == [0] * 4 and pack.num_truncated == 1


def test_lengths_without_room():
    vocabulary = Vocabulary(SPECIAL_TOKENS)
    for length, is_pair, least in ((4, True, 5), (2, False, 3)):
        with pytest.raises(UserError, match=f"must be at least {least}$"):
            TextPacking(vocabulary, length, is_pair)
        TextPacking(vocabulary, least, is_pair)
