"""Truncation of one or two texts to a length, against BERT's loop, and the packed result."""

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.text.packing import TextPacking, truncated_lengths
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdefgh"])
IDS = st.lists(st.integers(5, 12), max_size=30)


def truncated_by_run_classifier(first, second, room):
    """`_truncate_seq_pair` of BERT's run_classifier.py."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@laws.examples(300)
@given(st.integers(0, 400), st.integers(0, 400), st.integers(2, 500))
def test_lengths_are_those_of_run_classifier(first, second, room):
    expected = truncated_by_run_classifier(range(first), range(second), room)
    assert truncated_lengths(first, second, room) == tuple(map(len, expected))


@laws.examples(300)
@given(st.lists(st.tuples(IDS, IDS | st.none()), max_size=4), st.integers(5, 40), st.booleans())
def test_what_stands_where(rows, max_seq_length, is_pair):
    pack = TextPacking(VOCABULARY, max_seq_length, is_pair)
    num_cut = 0
    for first, second in rows:
        second = second if is_pair else None
        ids, segment_ids = pack(
            np.array(first, np.int32), second if second is None else np.array(second, np.int32)
        )
        room = max_seq_length - (3 if is_pair else 2)
        kept, behind = truncated_by_run_classifier(first, second or [], room)
        num_cut += (kept, behind) != (first, second or [])
        expected = [2, *kept, 3] + ([*behind, 3] if second is not None else [])
        assert ids.tolist() == expected and len(ids) <= max_seq_length
        assert segment_ids.tolist() == [int(n >= len(kept) + 2) for n in range(len(ids))]
        assert ids.dtype == segment_ids.dtype == np.int32
    assert pack.num_truncated == num_cut


def test_lengths_without_room():
    for length, is_pair, least in ((4, True, 5), (2, False, 3)):
        with pytest.raises(UserError, match=f"must be at least {least}$"):
            TextPacking(VOCABULARY, length, is_pair)
        TextPacking(VOCABULARY, least, is_pair)
