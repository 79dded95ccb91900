"""Serving of reading comprehension against what the programs predict."""

import numpy as np
import pytest
from conftest import SHARED
from export_folders import (
    INVALID,
    LONG_TEXT,
    NUM_TEXTS,
    ODD_TEXTS,
    Served,
    ask,
    assert_each_row_alone,
    real_texts,
)

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.data.squad import Question, read_questions
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.tasks.reading_comprehension.answers import answers_to
from nezha_tf.tasks.reading_comprehension.data import WindowedQuestions
from nezha_tf.tasks.reading_comprehension.loss import AnswerSpanLoss
from nezha_tf.tasks.reading_comprehension.search import AnswerSearch

SETTINGS = {
    "task": "reading_comprehension",
    "max_seq_length": 64,
    "max_query_length": 12,
    "doc_stride": 40,
    "max_answer_length": 15,
}
KINDS = {
    "plain": {"n_best_size": 20, "version_2_with_negative": False},
    "negative": {"n_best_size": 2, "version_2_with_negative": True, "doc_stride": 9},
}


def questions():
    path = SHARED / "data" / "cmrc2018" / "dev.json"
    found = []
    if path.exists():
        # As many passages as questions: the first on each.
        read = {q.context: q for q in read_questions([str(path)])}
        found = [(q.text, q.context) for q in read.values()][:NUM_TEXTS]
    found += [("谁" * number, text) for number, text in enumerate(real_texts()[:15], start=1)]
    # Repeated texts, a passage of one token, and those that end with a window or begin one.
    found += [
        ("什么", "甲乙" * 60),
        ("什么", "好"),
        ("a", "e\u0301\u0301 u\u0308"),
        ("？", ODD_TEXTS[3]),
    ]
    return found + [("多少", "中" * count) for count in (58, 59, 60, 67, 68, 69, 98, 99, 100)]


QUESTIONS = questions()


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root, found = tmp_path_factory.mktemp("reading"), {}
    for name, kind in KINDS.items():
        settings = {**SETTINGS, **kind, "null_score_diff_threshold": -1.8}
        found[name] = Served(root / name, settings)
    return found


def ask_all(export, pairs):
    asked, passages = zip(*pairs, strict=True)
    return ask(export, question=asked, passage=passages)


@pytest.mark.parametrize("name", KINDS)
def test_answers_equal_the_program(exports, name):
    folder = exports[name].folder
    task = folder.task
    lengths = (task[n] for n in ("max_seq_length", "max_query_length", "doc_stride"))
    rows = [Question(str(n), passage, text, ()) for n, (text, passage) in enumerate(QUESTIONS)]
    windows = WindowedQuestions(rows, TextReader(folder.tokenizer), *lengths)
    reader = ArrayReader(windows.arrays, task["max_seq_length"])
    logits = predict(folder.make_model(), AnswerSpanLoss(), reader, 32, False)
    expected = answers_to(AnswerSearch(task), windows.examples, *logits.values())
    found = ask_all(exports[name], QUESTIONS)
    for row, prediction in enumerate(expected):
        best = prediction.best
        place = (-1, -1) if best.start is None else (best.start, best.end)
        assert (found["answer"][row], found["start"][row], found["end"][row]) == (best.text, *place)
        numbers = {"score": best.score, "probability": best.probability}
        if name == "negative":
            numbers["null_score_diff"] = prediction.null_score_diff
        for key, number in numbers.items():
            np.testing.assert_allclose(found[key][row], number, atol=1e-5)
    answered = np.count_nonzero(found["answer"] != "")
    assert answered == len(QUESTIONS) if name == "plain" else 0 < answered < len(QUESTIONS)


@pytest.mark.parametrize("name", KINDS)
def test_one_by_one_no_text_no_utf_8_and_a_very_long_one(exports, name):
    asked, passages = map(list, zip(*QUESTIONS, strict=True))
    inputs = {"question": asked, "passage": passages}
    assert_each_row_alone(exports[name], inputs, range(len(QUESTIONS) - 5, len(QUESTIONS)))
    odd = [("", ""), ("什么", ""), ("", "好"), ("什么", " \t"), (INVALID, INVALID)]
    found = ask_all(exports[name], [*odd, ("天气" * 9, LONG_TEXT)])
    for row in (0, 1, 3):
        assert found["answer"][row] == "" and found["start"][row] == found["end"][row] == -1
    assert np.isfinite(found["probability"]).all() and (found["probability"] <= 1).all()
    start, end = found["start"][-1], found["end"][-1]
    assert found["answer"][-1] == (LONG_TEXT[start:end] if start >= 0 else "")
    if name == "plain":
        assert found["answer"][2] == "好" and found["answer"][-1]


def test_ids_give_the_logits(exports):
    ids = {
        "input_ids": [[2, 9, 3, 9, 3]],
        "input_mask": [[1] * 5],
        "segment_ids": [[0, 0, 0, 1, 1]],
    }
    found = ask(exports["plain"], "from_ids", **ids)
    assert {name: values.shape for name, values in found.items()} == {
        "start_logits": (1, 5),
        "end_logits": (1, 5),
    }
