"""The part of a passage from which a question is generated."""

import json

import pytest

from nezha_tf.tasks.seq2seq.question_generation import (
    QuestionGenerationSettings,
    make_question_generation_data,
    sentences_around,
)

PASSAGE = "甲乙丙。丁戊己庚！辛壬癸子？丑寅。卯辰"


@pytest.mark.parametrize(
    "answer, most, expected",
    [
        ("辛壬", 100, PASSAGE),
        ("辛壬", 5, "辛壬癸子？"),
        ("辛壬", 9, "辛壬癸子？丑寅。"),
        ("辛壬", 10, "丁戊己庚！辛壬癸子？"),
        ("辛壬", 13, "丁戊己庚！辛壬癸子？丑寅。"),
        ("甲", 6, "甲乙丙。"),
        ("卯辰", 6, "丑寅。卯辰"),
        ("庚！辛", 10, "丁戊己庚！辛壬癸子？"),
        ("壬癸", 4, "辛壬癸子"),
        ("子？", 3, "癸子？"),
        ("丁戊己庚", 2, "丁戊"),
    ],
)
def test_sentences_that_fit_around_an_answer(answer, most, expected):
    found = sentences_around(PASSAGE, PASSAGE.index(answer), len(answer), most)
    assert found == expected and len(found) <= most


def test_pairs_of_a_file(tmp_path):
    answers = [{"text": "丁戊", "answer_start": 4}, {"text": "nowhere", "answer_start": 0}]
    questions = [{"id": "1", "question": "谁？", "answers": answers}]
    data = [{"paragraphs": [{"context": PASSAGE, "qas": questions}]}]
    (tmp_path / "in.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    settings = QuestionGenerationSettings(
        input_file=str(tmp_path / "in.json"),
        output_file=str(tmp_path / "out.jsonl"),
        context_chars=9,
    )
    said = make_question_generation_data(settings)
    pair = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert said == f"1 question in {settings.output_file}"
    assert pair == {"src": "答案：丁戊 原文：甲乙丙。丁戊己庚！", "tgt": "谁？"}
