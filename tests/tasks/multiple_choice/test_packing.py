"""Packing of contexts and choices, and the choice among them, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import examples

from nezha_tf.modeling.finetuning import NO_CHOICE
from nezha_tf.tasks.multiple_choice.packing import (
    OTHER_BLANK,
    BlankPacking,
    QuestionPacking,
    around,
    truncated_lengths,
)
from nezha_tf.tasks.multiple_choice.task import chosen
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError

PAD, UNK, CLS, SEP, MASK, UNUSED = range(6)
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", *"甲乙丙"])
COUNTS = st.integers(0, 30)


def popped(context, choice, question, room):
    """The lengths when the longest text loses its last token again and again."""
    while context + choice + question > room:
        if context >= choice and context >= question:
            context -= 1
        elif choice >= context and choice >= question:
            choice -= 1
        else:
            question -= 1
    return context, choice, question


@examples(200)
@given(st.tuples(COUNTS, COUNTS, COUNTS), st.integers(3, 60))
def test_the_longest_text_loses_its_last_token(lengths, room):
    assert truncated_lengths(lengths, room) == popped(*lengths, room)


def sides(tokens, position, room):
    """The window around a place, as CLUE's program for ChID takes it, case by case."""
    half, rest = room // 2, room - room // 2
    behind = len(tokens) - 1 - position
    if position >= half and behind >= rest:
        return half, rest
    if position <= half:
        return position, min(behind, room - position)
    return min(position, room - behind), behind


@examples(200)
@given(COUNTS, COUNTS, st.integers(1, 40))
def test_the_window_around_a_blank(left, right, room):
    assert around(left, right, room) == sides(range(left + 1 + right), left, room)


@examples(60)
@given(st.data())
def test_a_question_is_packed_within_its_length(data):
    length = data.draw(st.integers(7, 40))
    texts = [data.draw(st.lists(st.integers(6, 8), min_size=1, max_size=30)) for _ in range(3)]
    context, question, choice = texts
    packing = QuestionPacking(VOCABULARY, length)
    ids, segment_ids = packing(context, question, choice)
    kept = popped(len(context), len(choice), len(question), length - 4)
    first = [CLS, *context[: kept[0]], SEP]
    second = [*question[: kept[2]], SEP, *choice[: kept[1]], SEP]
    assert ids.tolist() == first + second
    assert segment_ids.tolist() == [0] * len(first) + [1] * len(second)
    assert packing.num_truncated == (kept != (len(context), len(choice), len(question)))
    with pytest.raises(UserError, match="must be at least 7"):
        QuestionPacking(VOCABULARY, 6)


def test_a_blank_is_packed():
    packing = BlankPacking(VOCABULARY, 14)
    left, right = [6, OTHER_BLANK, 7, 8], [8, OTHER_BLANK, 7, 6, 6, 6]
    # Of the ten places of choice and text, six are for the text: three on each side.
    ids, segment_ids = packing(left, right, [6, 6, 6, 6])
    # The window is [other, 7, 8] and [8, other, 7]; an other blank is four [MASK], and what is
    # then too much is cut at the edges.
    assert ids.tolist() == [CLS, 6, 6, 6, 6, SEP, MASK, 7, 8, UNUSED, 8, MASK, MASK, SEP]
    assert not segment_ids.any() and packing.num_truncated == 1
    assert BlankPacking(VOCABULARY, 14)([], [], [6])[0].tolist() == [CLS, 6, SEP, UNUSED, SEP]


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
