"""Property tests of windows of passages: run_squad.py's rules, and the places of answers."""

import itertools

import laws
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.data.squad import Answer, Question
from nezha_tf.tasks.reading_comprehension.data import Windowing, best_windows, stretches_of
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError

TOKENS = [
    *SPECIAL_TOKENS,
    *"甲乙丙丁，。ac",
    "ab",
    "##cd",
    "##ef",
    "\u1112",
    "##\u1161",
    "##\u11ab",
]
TOKENIZER = FullTokenizer(vocabulary=Vocabulary(TOKENS))


@st.composite
def lengths(draw):
    """Draws the tokens of a passage, the room of a window, and the stride."""
    room = draw(st.integers(1, 20))
    return draw(st.integers(1, 80)), room, draw(st.integers(1, room))


def is_best_by_run_squad(stretches, number, position):
    """`_check_is_max_context` of BERT's run_squad.py."""
    best_score, best_number = None, None
    for index, (start, length) in enumerate(stretches):
        end = start + length - 1
        if position < start or position > end:
            continue
        score = min(position - start, end - position) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best_number = score, index
    return number == best_number


@laws.examples(200)
@given(lengths())
def test_stretches_cover_the_passage_and_each_token_has_one_best_window(values):
    num_tokens, room, doc_stride = values
    stretches = list(stretches_of(*values))
    assert all(0 < count <= room for _, count in stretches)
    starts = [first for first, _ in stretches]
    assert starts == [doc_stride * number for number in range(len(stretches))]
    # Nothing is left out, and the first window that reaches the end is the last one.
    ends = [first + count for first, count in stretches]
    assert {p for s, e in zip(starts, ends, strict=True) for p in range(s, e)} == {
        *range(num_tokens)
    }
    assert ends[-1] == num_tokens and all(end < num_tokens for end in ends[:-1])
    best = best_windows(stretches, num_tokens)
    for number, token in itertools.product(range(len(stretches)), range(num_tokens)):
        assert (best[token] == number) == is_best_by_run_squad(stretches, number, token)


@st.composite
def questions(draw):
    """Draws questions on passages of known, unknown and dropped characters, with an answer."""
    parts = st.sampled_from([*"甲乙丙丁，。龘é한 \t\u200b", "abcd", "abef", "한글", "accd", "甲乙"])
    context = "甲" + "".join(draw(st.lists(parts, max_size=30)))
    start = draw(st.integers(0, len(context) - 1))
    end = draw(st.integers(start + 1, len(context)))
    answers = (Answer(context[start:end], start),) if draw(st.booleans()) else ()
    text = "".join(draw(st.lists(parts, max_size=8)))
    return Question("Q", context, f"乙{text}", answers, not answers)


@laws.examples(200)
@given(st.data(), questions())
def test_positions_point_at_the_tokens_of_the_answer(data, question):
    max_query_length = data.draw(st.integers(1, 6))
    room = data.draw(st.integers(1, 12))
    doc_stride = data.draw(st.integers(1, room))
    windowing = Windowing(TOKENIZER, max_query_length + 3 + room, max_query_length, doc_stride)
    query = TOKENIZER.tokenize(question.text)[:max_query_length]
    tokens = TOKENIZER.tokenize_with_offsets(question.context)
    places = set()
    for answer in question.answers:
        places = set(range(answer.start, answer.start + len(answer.text)))
    target = [n for n, p in enumerate(tokens) if places & {*range(p.start, p.end)}]
    try:
        windows = windowing([question])
    except UserError as error:
        assert "has no tokens" in str(error) and places and not target
        return
    assert not places or target
    (example,), arrays = windows.examples, windows.arrays
    assert len(example.stretches) == len(arrays["input_ids"])
    for number, (first, count) in enumerate(example.stretches):
        ids, start, end = (
            arrays[name][number] for name in ("input_ids", "start_positions", "end_positions")
        )
        shown = [token.text for token in tokens[first : first + count]]
        expected = ["[CLS]", *query, "[SEP]", *shown, "[SEP]"]
        assert TOKENIZER.convert_ids_to_tokens(ids) == expected
        assert len(ids) <= max_query_length + 3 + room
        found = [*range(start, end + 1)] if (start, end) != (0, 0) else []
        in_window = [token - first + len(query) + 2 for token in target]
        is_whole = bool(target) and first <= target[0] and target[-1] < first + count
        assert found == (in_window if is_whole else [])


@laws.examples(100)
@given(context=texts(), text=texts(), start=st.integers(0, 40), size=st.integers(1, 20))
def test_any_text_gives_windows_or_an_error(context, text, start, size):
    answer = context[start : start + size]
    answers = (Answer(answer, start),) if answer else ()
    try:
        windows = Windowing(TOKENIZER, 12, 4, 3)([Question("Q", context, text, answers)])
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return
    (example,) = windows.examples
    shown = {token for first, n in example.stretches for token in range(first, first + n)}
    assert shown == {*range(len(TOKENIZER.tokenize(context)))}
