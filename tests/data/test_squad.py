"""Questions of SQuAD's form, and files that have another."""

import json

import pytest

from nezha_tf.data.squad import Question, read_questions
from nezha_tf.errors import UserError

PASSAGE = "长江全长6300公里，是亚洲第一长河。"


def write(folder, *answers):
    entries = [
        {"id": f"Q{n}", "question": "有多长？", "answers": [{"text": text, "answer_start": start}]}
        for n, (text, start) in enumerate(answers)
    ]
    path = folder / "questions.json"
    data = [{"paragraphs": [{"context": PASSAGE, "qas": entries}]}]
    path.write_text(json.dumps({"version": "1", "data": data}), encoding="utf-8")
    return path


def test_questions_with_their_answers(tmp_path):
    found = read_questions(write(tmp_path, ("6300公里", 4), ("亚洲", 2)))
    assert found == [
        Question("Q0", PASSAGE, "有多长？", "6300公里", 4),
        Question("Q1", PASSAGE, "有多长？", "亚洲", 12),  # The file's place is wrong.
    ]


@pytest.mark.parametrize(
    "text, fault",
    [
        ("{", "is not JSON"),
        ("[]", "has not SQuAD's form"),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "has not SQuAD's form"),
    ],
)
def test_files_of_another_form(tmp_path, text, fault):
    path = tmp_path / "questions.json"
    path.write_text(text)
    with pytest.raises(UserError, match=fault):
        read_questions(path)
    with pytest.raises(UserError, match="cannot read"):
        read_questions(tmp_path / "missing.json")


def test_an_answer_that_is_nowhere(tmp_path):
    with pytest.raises(UserError, match="'黄河' to Q0 is not in its passage"):
        read_questions(write(tmp_path, ("黄河", 0)))
