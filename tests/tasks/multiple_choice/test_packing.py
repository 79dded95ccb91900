"""Packing of contexts and choices, and the choice among them, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from nezha_tf.modeling.finetuning import NO_CHOICE
from nezha_tf.tasks.multiple_choice.packing import OTHER_BLANK, BlankPacking, QuestionPacking
from nezha_tf.tasks.multiple_choice.task import chosen
from nezha_tf.text.packing import pack_all
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError

PAD, UNK, CLS, SEP, MASK, UNUSED = range(6)
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", *"甲乙丙"])
COUNTS = st.integers(0, 30)


def sides(tokens, position, room):
    """The window around a place, as CLUE's program for ChID takes it, case by case."""
    half, rest = room // 2, room - room // 2
    behind = len(tokens) - 1 - position
    if position >= half and behind >= rest:
        return half, rest
    if position <= half:
        return position, min(behind, room - position)
    return min(position, room - behind), behind


def packed(packing, *texts):
    """Returns (ids, segment ids, whether a text was cut) of the texts of a row."""
    ids, segment_ids, num_cut = pack_all(packing, *([np.array(text, np.int32)] for text in texts))
    return ids[0].tolist(), segment_ids[0].tolist(), num_cut


@examples(200)
@given(COUNTS, COUNTS, st.integers(2, 40))
def test_the_window_around_a_blank(left, right, room):
    ids, _, _ = packed(BlankPacking(VOCABULARY, room + 5), [7] * left, [8] * right, [6])
    kept = sides(range(left + 1 + right), left, room)
    assert (ids.count(7), ids.count(8)) == kept


def test_a_question_is_packed_within_its_length():
    packing = QuestionPacking(VOCABULARY, 12)
    ids, segment_ids, num_cut = packed(packing, [6] * 5, [7, 8], [8, 8, 6, 6])
    first, second = [CLS, 6, 6, 6, SEP], [7, 8, SEP, 8, 8, 6, SEP]
    assert ids == first + second and num_cut == 1
    assert segment_ids == [0] * len(first) + [1] * len(second)
    with pytest.raises(UserError, match="must be at least 7"):
        QuestionPacking(VOCABULARY, 6)


def test_a_blank_is_packed():
    packing = BlankPacking(VOCABULARY, 14)
    left, right = [6, OTHER_BLANK, 7, 8], [8, OTHER_BLANK, 7, 6, 6, 6]
    # Of the ten places of choice and text, six are for the text: three on each side.
    ids, segment_ids, num_cut = packed(packing, left, right, [6, 6, 6, 6])
    # The window is [other, 7, 8] and [8, other, 7]; an other blank is four [MASK], and what is
    # then too much is cut at the edges.
    assert ids == [CLS, 6, 6, 6, 6, SEP, MASK, 7, 8, UNUSED, 8, MASK, MASK, SEP]
    assert not any(segment_ids) and num_cut == 1
    assert packed(packing, [], [], [6])[0] == [CLS, 6, SEP, UNUSED, SEP]


SCORES = st.floats(-9, 9, width=32)


@examples(100)
@given(st.data())
def test_blanks_of_a_group_get_different_choices(data):
    """The largest score of all that is left decides, one pair after the other."""
    count, width = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 5))
    rows = data.draw(
        st.lists(
            st.lists(SCORES, min_size=width, max_size=width, unique=True),
            min_size=count,
            max_size=count,
        )
    )
    logits = np.array(rows, np.float32)
    last = data.draw(st.integers(2, width))
    logits[:, last:] = NO_CHOICE
    groups = data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=count, max_size=count))
    found = chosen(logits, groups)
    assert chosen(logits).tolist() == logits.argmax(axis=1).tolist()
    for name in ("a", "b"):
        members = [i for i, group in enumerate(groups) if group == name]
        free, left = set(range(last)), list(members)
        while left and free:
            top = max(logits[i, c] for i in left for c in free)
            i, c = next((i, c) for i in left for c in sorted(free) if logits[i, c] == top)
            assert found[i] == c
            left.remove(i)
            free.remove(c)
        assert all(found[i] == logits[i].argmax() for i in left)
    assert all(found[i] == logits[i].argmax() for i, g in enumerate(groups) if g is None)
