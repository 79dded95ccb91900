"""Questions in SQuAD's format, and files in another format."""

import json

import pytest

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.squad import Answer, Question, read_questions
from nezha_tf.errors import UserError

PASSAGE = "长江全长6300公里，是亚洲第一长河，长江。"


def entry(number, *answers, **changes):
    found = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": f"Q{number}", "question": "有多长？", "answers": found, **changes}


def write(folder, *entries, name="questions.json", context=PASSAGE):
    path = folder / name
    data = [{"paragraphs": [{"context": context, "qas": entries}]}]
    path.write_text(json.dumps({"version": "1", "data": data}), encoding="utf-8")
    return str(path)


def test_questions_with_their_answers(tmp_path):
    path = write(tmp_path, entry(0, ("6300公里", 4)), entry(1, ("亚洲", 2), ("亚洲之", 2)))
    assert read_questions([path]) == [
        Question("Q0", PASSAGE, "有多长？", (Answer("6300公里", 4),), False, path),
        # The file's place is wrong; the second annotator's text is not in the passage.
        Question(
            "Q1",
            PASSAGE,
            "有多长？",
            (Answer("亚洲", 12, True), Answer("亚洲之", None)),
            False,
            path,
        ),
    ]


@pytest.mark.parametrize("start, found", ((0, 0), (3, 0), (16, 19), (19, 19), (-1, 0), (99, 19)))
def test_of_several_places_the_nearest_is_taken(tmp_path, start, found):
    (question,) = read_questions([write(tmp_path, entry(0, ("长江", start)))])
    assert question.answers == (Answer("长江", found, is_moved=start != found),)


def test_questions_without_an_answer(tmp_path):
    path = write(
        tmp_path,
        entry(0, is_impossible=True, plausible_answers=[{"text": "亚洲", "answer_start": 12}]),
        entry(1, ("亚洲", 12), is_impossible=False),
    )
    first, second = read_questions([path], with_impossible=True)
    assert (first.is_impossible, first.answers) == (True, ())
    assert not second.is_impossible and first.is_labelled and second.is_labelled
    with pytest.raises(UserError, match=r"question Q0: it is impossible; .*--version_2"):
        read_questions([path])


def test_files_that_are_to_be_answered(tmp_path):
    unlabelled = entry(1)
    del unlabelled["answers"]
    path = write(tmp_path, entry(0), unlabelled, entry(2, ("FAKE", -1)))
    found = read_questions([path], needs_answers=False)
    assert [question.is_labelled for question in found] == [False, False, False]
    assert found[2].answers == (Answer("FAKE", None),)


@pytest.mark.parametrize(
    "answers",
    (
        [{"text": "", "answer_start": -1}],
        [{"text": "FAKE"}],
        [{}],
        ["亚洲"],
        None,
        {},
        [{"text": "", "answer_start": 0}, {"text": "亚洲", "answer_start": 12}],
    ),
    ids=str,
)
def test_placeholders_of_files_that_are_to_be_answered(tmp_path, answers):
    path = write(tmp_path, {**entry(0), "answers": answers})
    (found,) = read_questions([path], needs_answers=False)
    has_one = isinstance(answers, list) and len(answers) == 2
    assert found.answers == ((Answer("亚洲", 12),) if has_one else ())
    assert found.is_labelled == has_one
    with pytest.raises(UserError, match="question Q0: "):
        read_questions([path])


@pytest.mark.parametrize(
    "text, fault",
    [
        ("{", "is not JSON"),
        ("[]", "does not have SQuAD's format"),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "does not have SQuAD's format"),
        ('{"data": []}', "no question"),
        ('{"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}', "no question"),
    ],
)
def test_files_of_another_form(tmp_path, text, fault):
    path = tmp_path / "questions.json"
    path.write_text(text)
    with pytest.raises(UserError, match=fault):
        read_questions([str(path)])
    with pytest.raises(UserError, match="cannot read"):
        read_questions([str(tmp_path / "missing.json")])


FAULTS = {
    "the answer '黄河' is not in its passage": entry(7, ("黄河", 0)),
    '"answers" is empty': entry(7),
    '"answers" is missing': entry(7, answers=None),
    "an answer is not a JSON object": entry(7, answers=["亚洲"]),
    '"answer_start" is missing': entry(7, answers=[{"text": "亚洲"}]),
    '"text" is empty': entry(7, ("", 0)),
    '"question" is empty': entry(7, ("亚洲", 12), question=" "),
    '"question" is missing': {"id": "Q7", "answers": [{"text": "亚洲", "answer_start": 12}]},
    '"question" holds half a character': entry(7, ("亚洲", 12), question="\ud800"),
    '"is_impossible" is neither': entry(7, ("亚洲", 12), is_impossible="no"),
    "its id is used twice": entry(0, ("亚洲", 12), id="Q0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_question(tmp_path, fault):
    faulty = FAULTS[fault]
    path = write(tmp_path, entry(0, ("亚洲", 12)), faulty, entry(2, ("亚洲", 12)))
    with pytest.raises(UserError) as error:
        read_questions([path])
    assert str(error.value).startswith(f"{path}, question {faulty['id']}: {fault}")
    assert len(str(error.value).splitlines()) == 1
    bad_rows = BadRows(skip=True)
    found = read_questions([path], bad_rows=bad_rows)
    assert [question.id for question in found] == ["Q0", "Q2"]
    assert (bad_rows.count, bad_rows.first) == (1, str(error.value))


def test_a_fault_of_what_has_no_id_and_of_a_passage(tmp_path):
    good = entry(0, ("亚洲", 12))
    with pytest.raises(UserError, match='question number 2: "id" is missing'):
        read_questions([write(tmp_path, good, {"question": "谁？"})])
    with pytest.raises(UserError, match="question number 1: it is not a JSON object"):
        read_questions([write(tmp_path, "谁？")])
    path = write(tmp_path, good, context="")
    with pytest.raises(UserError, match='question Q0: "context" is empty'):
        read_questions([path])
    with pytest.raises(UserError, match=r"no question is valid; the first fault: .*Q0"):
        read_questions([path], bad_rows=BadRows(skip=True))
    twice = [write(tmp_path, good), write(tmp_path, good, name="others.json")]
    with pytest.raises(UserError, match=r"others.json, question Q0: its id is used twice"):
        read_questions(twice)
