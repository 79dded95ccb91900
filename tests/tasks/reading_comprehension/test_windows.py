"""Windows of questions: their tokens, the places of answers, counts, and what has no tokens."""

import laws
import numpy as np
import pytest
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Answer, Question
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.reading_comprehension.data import WindowedQuestions
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError

SYLLABLE = ("\u1112", "##\u1161", "##\u11ab")
TOKENS = [*SPECIAL_TOKENS, *"甲乙丙丁，。ac", "ab", "##cd", "##ef", *SYLLABLE]
TOKENIZER = FullTokenizer(vocabulary=Vocabulary(TOKENS))
READER = TextReader(TOKENIZER)


@st.composite
def questions(draw):
    """Draws questions on passages of known, unknown and dropped characters, with an answer."""
    parts = st.sampled_from([*"甲乙丙丁，。龘é한 \t\u200b", "abcd", "abef", "한글", "accd", "甲乙"])
    context = "甲" + "".join(draw(st.lists(parts, max_size=30)))
    start = draw(st.integers(0, len(context) - 1))
    end = draw(st.integers(start + 1, len(context)))
    answer = Answer(context[start:end], start, is_moved=draw(st.booleans()))
    answers = (answer,) if draw(st.booleans()) else ()
    text = "".join(draw(st.lists(parts, max_size=8)))
    return Question("Q", context, f"乙{text}", answers, not answers)


@laws.examples(60)
@given(st.data(), questions())
def test_positions_point_at_the_tokens_of_the_answer(data, question):
    max_query_length = data.draw(st.integers(1, 6))
    room = data.draw(st.integers(1, 12))
    doc_stride = data.draw(st.integers(1, room))
    max_seq_length = max_query_length + 3 + room
    all_of_query = TOKENIZER.tokenize(question.text)
    query = all_of_query[:max_query_length]
    tokens = TOKENIZER.tokenize_with_offsets(question.context)
    places = set()
    for answer in question.answers:
        places = set(range(answer.start, answer.start + len(answer.text)))
    target = [n for n, p in enumerate(tokens) if places & {*range(p.start, p.end)}]
    try:
        windowed = WindowedQuestions(
            [question], READER, max_seq_length, max_query_length, doc_stride
        )
    except UserError as error:
        assert "has no tokens" in str(error) and places and not target
        return
    assert not places or target
    (example,), arrays = windowed.examples, windowed.arrays
    assert example.question == question and example.first_window == 0
    room = max_seq_length - 3 - len(query)
    # As many windows as it takes, the last one as long as what is left.
    count = max(0, len(tokens) - room + doc_stride - 1) // doc_stride + 1
    windows = [[n * doc_stride, min(room, len(tokens) - n * doc_stride)] for n in range(count)]
    assert example.windows.tolist() == windows
    assert len(example.windows) == len(arrays["input_ids"])
    is_shown = False
    for number, (first, count) in enumerate(example.windows):
        ids, segment_ids, start, end = (values[number] for values in arrays.values())
        shown = [token.text for token in tokens[first : first + count]]
        expected = ["[CLS]", *query, "[SEP]", *shown, "[SEP]"]
        assert TOKENIZER.convert_ids_to_tokens(ids) == expected and len(ids) <= max_seq_length
        assert segment_ids.tolist() == [0] * (len(query) + 2) + [1] * (count + 1)
        found = [*range(start, end + 1)] if (start, end) != (0, 0) else []
        in_window = [token - first + len(query) + 2 for token in target]
        is_whole = bool(target) and first <= target[0] and target[-1] < first + count
        assert found == (in_window if is_whole else [])
        is_shown |= is_whole
    characters = {c for n in target for c in range(tokens[n].start, tokens[n].end)}
    is_wider = bool(target) and not {min(characters), max(characters)} <= places
    expected = {
        "questions truncated": len(all_of_query) > max_query_length,
        "answers widened to whole tokens": is_wider,
        "answers that no window shows whole": bool(target) and not is_shown,
        "answers moved to their places in the passages": any(a.is_moved for a in question.answers),
    }
    assert {what: count for what, count in windowed.counts.items() if count} == {
        what: 1 for what, is_counted in expected.items() if is_counted
    }
    assert all(f"; {what}: 1" in windowed.description() for what in expected if expected[what])


@laws.examples(40)
@given(context=texts(), text=texts(), start=st.integers(0, 40), size=st.integers(1, 20))
def test_any_text_gives_windows_or_an_error(context, text, start, size):
    answer = context[start : start + size]
    answers = (Answer(answer, start),) if answer else ()
    try:
        windowed = WindowedQuestions([Question("Q", context, text, answers)], READER, 12, 4, 3)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return
    (example,) = windowed.examples
    shown = {token for first, n in example.windows for token in range(first, first + n)}
    assert shown == {*range(len(TOKENIZER.tokenize(context)))}


GOOD = Question("Q1", "甲乙\u200b丙", "丁", (Answer("乙", 1),), path="a.json")


def test_lengths_that_leave_no_room_or_skip_text():
    with pytest.raises(UserError, match=r"--max_seq_length=67 leaves no room .* at least 68"):
        WindowedQuestions([GOOD], READER, 67, 64, 1)
    with pytest.raises(UserError, match=r"--doc_stride=62 skips text: .* pass at most 61"):
        WindowedQuestions([GOOD], READER, 128, 64, 62)
    WindowedQuestions([GOOD], READER, 68, 64, 1)


@pytest.mark.parametrize(
    "fault, changes",
    (
        ("the question has no tokens", {"text": "\u200b"}),
        ("its passage has no tokens", {"context": "\u200b\ufffd", "answers": ()}),
        ("the answer '\\\\u200b' has no tokens", {"answers": (Answer("\u200b", 2),)}),
    ),
)
def test_texts_without_a_token(fault, changes):
    bad = GOOD._replace(id="Q2", **changes)
    with pytest.raises(UserError, match=rf"^a.json, question Q2: {fault}"):
        WindowedQuestions([GOOD, bad], READER, 16, 4, 5)
    bad_rows = BadRows(skip=True)
    windowed = WindowedQuestions([bad, GOOD], READER, 16, 4, 5, bad_rows)
    assert [e.question.id for e in windowed.examples] == ["Q1"] and bad_rows.count == 1
    assert np.array_equal(windowed.arrays["start_positions"], [4])
    with pytest.raises(UserError, match=r"no question is left; the first fault: a.json"):
        WindowedQuestions([bad], READER, 16, 4, 5, BadRows(skip=True))
