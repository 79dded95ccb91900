"""Windows of questions: their texts, their counts, and what has no tokens."""

import random

import numpy as np
import pytest

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Answer, Question
from nezha_tf.tasks.reading_comprehension.data import Windowing, stretches_of
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError

CHARACTERS = "甲乙丙丁戊己庚辛壬癸"
TOKENIZER = FullTokenizer(
    vocabulary=Vocabulary([*SPECIAL_TOKENS, *CHARACTERS, "ab", "##cd", "##ef"])
)


def make_questions(count):
    rng = random.Random(2)
    questions = []
    for number in range(count):
        context = "".join(rng.choices([*CHARACTERS, "abcd", " "], k=rng.randint(1, 40))) + "甲"
        start = rng.randrange(len(context))
        text = context[start : start + rng.randint(1, 8)]
        answers = (Answer(text, start, rng.random() < 0.2),) if text.strip() else ()
        query = "".join(rng.choices(CHARACTERS, k=rng.randint(1, 6)))
        questions.append(Question(str(number), context, query, answers, not answers))
    return questions


def test_examples_are_question_and_stretch_with_the_answers_place():
    questions = make_questions(200)
    windows = Windowing(TOKENIZER, max_seq_length=16, max_query_length=4, doc_stride=8)(questions)
    assert [example.question for example in windows.examples] == questions
    number = widened = lost = 0
    for question, example in zip(questions, windows.examples, strict=True):
        query = TOKENIZER.tokenize(question.text)[:4]
        tokens = TOKENIZER.tokenize_with_offsets(question.context)
        target = [
            place
            for answer in question.answers
            for place, token in enumerate(tokens)
            if token.start < answer.start + len(answer.text) and token.end > answer.start
        ]
        if target:
            answer = question.answers[0]
            widened += tokens[target[0]].start < answer.start or tokens[target[-1]].end > (
                answer.start + len(answer.text)
            )
        assert example.first_window == number
        assert example.stretches == list(stretches_of(len(tokens), 13 - len(query), 8))
        is_shown = False
        for first, count in example.stretches:
            ids = windows.arrays["input_ids"][number]
            shown = [token.text for token in tokens[first : first + count]]
            expected = ["[CLS]", *query, "[SEP]", *shown, "[SEP]"]
            assert TOKENIZER.convert_ids_to_tokens(ids) == expected and len(ids) <= 16
            segments = [0] * (len(query) + 2) + [1] * (count + 1)
            assert windows.arrays["segment_ids"][number].tolist() == segments
            start = windows.arrays["start_positions"][number]
            end = windows.arrays["end_positions"][number]
            if target and first <= target[0] and target[-1] < first + count:
                is_shown = True
                place = len(query) + 2 - first
                assert (start, end) == (target[0] + place, target[-1] + place)
            else:
                assert (start, end) == (0, 0)
            number += 1
        lost += bool(target) and not is_shown
    assert number == len(windows.arrays["input_ids"])
    assert windows.counts["questions truncated"] == sum(len(q.text) > 4 for q in questions) > 0
    assert windows.counts["answers widened to whole tokens"] == widened > 0
    assert windows.counts["answers that no window shows whole"] == lost > 0
    moved = sum(answer.is_moved for question in questions for answer in question.answers)
    told = f"answers moved to their places in the passages: {moved}"
    assert moved > 0 and told in windows.description()
    assert f"answers widened to whole tokens: {widened}" in windows.description()


def test_lengths_that_leave_no_room_or_skip_text():
    with pytest.raises(UserError, match=r"--max_seq_length=67 leaves no room .* at least 68"):
        Windowing(TOKENIZER, 67, 64, 1)
    with pytest.raises(UserError, match=r"--doc_stride=62 skips text: .* pass at most 61"):
        Windowing(TOKENIZER, 128, 64, 62)
    Windowing(TOKENIZER, 68, 64, 1)


@pytest.mark.parametrize(
    "fault, changes",
    (
        ("the question has no tokens", {"text": "\u200b"}),
        ("its passage has no tokens", {"context": "\u200b\ufffd", "answers": ()}),
        ("the answer '\\\\u200b' has no tokens", {"answers": (Answer("\u200b", 2),)}),
    ),
)
def test_texts_without_a_token(fault, changes):
    good = Question("Q1", "甲乙\u200b丙", "丁", (Answer("乙", 1),), path="a.json")
    bad = good._replace(id="Q2", **changes)
    windowing = Windowing(TOKENIZER, 16, 4, 5)
    with pytest.raises(UserError, match=rf"^a.json, question Q2: {fault}"):
        windowing([good, bad])
    bad_rows = BadRows(skip=True)
    windows = windowing([bad, good], bad_rows)
    assert [e.question.id for e in windows.examples] == ["Q1"] and bad_rows.count == 1
    assert np.array_equal(windows.arrays["start_positions"], [4])
    with pytest.raises(UserError, match=r"no question is left; the first fault: a.json"):
        windowing([bad], BadRows(skip=True))
