"""Truncation of texts to a length, against the originals' loops, and the packed result."""

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.text.packing import pack_all, ragged_of, text_packing, truncated
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


def truncated_by_c3(context, choice, question, room):
    """The lengths after `_truncate_seq_tuple` of C3's program."""
    while context + choice + question > room:
        if context >= choice and context >= question:
            context -= 1
        elif choice >= context and choice >= question:
            choice -= 1
        else:
            question -= 1
    return context, choice, question


def lengths_after(lengths, room):
    """Returns what `truncated` keeps of a row of texts with these lengths."""
    kept = truncated([ragged_of([np.zeros(length, np.int32)]) for length in lengths], room)
    return tuple(int(length[0]) for length in kept)


COUNTS = st.integers(0, 60)


@laws.examples(200)
@given(COUNTS, COUNTS, COUNTS, st.integers(3, 120))
def test_lengths_are_those_of_the_originals(first, second, third, room):
    pair = truncated_by_run_classifier(range(first), range(second), room)
    assert lengths_after((second, first), room) == tuple(map(len, pair[::-1]))
    three = (first, second, third)
    assert lengths_after(three, room) == truncated_by_c3(*three, room)
    assert lengths_after((first,), room) == (min(first, room),)


@laws.examples(100)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4), st.integers(5, 40), st.booleans())
def test_what_stands_where(rows, max_seq_length, is_pair):
    sides = [[np.array(ids, np.int32) for ids in side] for side in zip(*rows, strict=True)]
    packing = text_packing(VOCABULARY, max_seq_length, is_pair)
    found = pack_all(packing, *sides[: 1 + is_pair])
    num_cut = 0
    for (first, second), ids, segment_ids in zip(rows, *found[:2], strict=True):
        second = second if is_pair else []
        room = max_seq_length - (3 if is_pair else 2)
        kept, behind = truncated_by_run_classifier(first, second, room)
        num_cut += (kept, behind) != (first, second)
        expected = [2, *kept, 3] + ([*behind, 3] if is_pair else [])
        assert ids.tolist() == expected and len(ids) <= max_seq_length
        assert segment_ids.tolist() == [int(n >= len(kept) + 2) for n in range(len(ids))]
        assert ids.dtype == segment_ids.dtype == np.int32
    assert found[2] == num_cut


def test_lengths_without_room():
    for length, is_pair, least in ((4, True, 5), (2, False, 3)):
        with pytest.raises(UserError, match=f"must be at least {least}$"):
            text_packing(VOCABULARY, length, is_pair)
        text_packing(VOCABULARY, least, is_pair)
