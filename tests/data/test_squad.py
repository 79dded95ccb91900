"""Questions in SQuAD's format, and files in another format."""

import json

import pytest

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Answer, Question, read_questions
from nezha_tf.util.errors import UserError

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


def test_placeholders_of_files_that_are_to_be_answered(tmp_path):
    real = {"text": "亚洲", "answer_start": 12}
    empty = {"text": "", "answer_start": -1}
    for answers in ([empty], [{"text": "FAKE"}], [{}], [["亚洲"]], None, {}, [empty, real]):
        path = write(tmp_path, {**entry(0), "answers": answers})
        (found,) = read_questions([path], needs_answers=False)
        has_one = answers == [empty, real]
        assert found.answers == ((Answer("亚洲", 12),) if has_one else ())
        assert found.is_labelled == has_one
        with pytest.raises(UserError, match="question Q0: "):
            read_questions([path])


def test_files_of_another_form(tmp_path):
    path = tmp_path / "questions.json"
    for text, fault in (
        ("{", "line 1: not JSON"),
        ("[]", "does not have SQuAD's format"),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "does not have SQuAD's format"),
        ('{"data": []}', "no question"),
        ('{"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}', "no question"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=fault):
            read_questions([str(path)])
    with pytest.raises(UserError, match="cannot read"):
        read_questions([str(tmp_path / "missing.json")])


FLAT = {"context": PASSAGE, "question": "有多长？"}
# The same question and answers in the forms in which people have them.
SAME = {
    "an array of Hugging Face's rows": [
        {"id": 7, **FLAT, "answers": {"text": ["亚洲", "洲之"], "answer_start": [12, 0]}}
    ],
    "Hugging Face's rows in data": {
        "data": [{"id": 7, **FLAT, "answers": {"text": ["亚洲", "洲之"], "answer_start": [12, 0]}}]
    },
    "rows with lists of answers": {
        "id": 7,
        **FLAT,
        "answers": [
            {"text": "亚洲", "answer_start": 12.0},
            {"text": "洲之", "answer_start": 12},
        ],
    },
    "a paragraph a line": {
        "context": PASSAGE,
        "qas": [
            {
                "qid": 7,
                "question": "有多长？",
                "is_impossible": "False",
                "answers": [{"text": t, "answer_start": 12} for t in ("亚洲", "洲之")],
            }
        ],
    },
}
# As above, but no place is said.
SEARCHED = {
    "CMRC2018's own form": [
        {
            "context_id": "TRIAL_1",
            "context_text": PASSAGE,
            "title": "长江",
            "qas": [{"query_id": 7, "query_text": "有多长？", "answers": ["长江", "洲之"]}],
        }
    ],
    "texts in Hugging Face's rows": {"id": 7, **FLAT, "answers": {"text": ["长江", "洲之"]}},
    "DuReader, prepared": {
        "question_id": 7,
        "question": "有多长？",
        "documents": [
            {"paragraphs": ["黄河。"], "most_related_para": 0, "is_selected": False},
            {"paragraphs": ["黄河。", PASSAGE], "most_related_para": 1, "is_selected": True},
        ],
        "answer_docs": [1],
        "fake_answers": ["长江"],
        "answers": ["洲之"],
    },
}


@pytest.mark.parametrize("form", [*SAME, *SEARCHED])
def test_forms_of_other_data_sets_give_the_same_question(tmp_path, form):
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({**SAME, **SEARCHED}[form], ensure_ascii=False, indent=1))
    first = Answer("亚洲", 12) if form in SAME else Answer("长江", 0, is_searched=True)
    second = Answer("洲之", None, is_searched=form in SEARCHED)
    wanted = Question(7, PASSAGE, "有多长？", (first, second), False, str(path))
    assert read_questions([str(path)]) == [wanted]


def test_lines_of_json_with_blank_lines_and_faults(tmp_path):
    rows = [{"id": n, **FLAT, "answers": {"text": ["亚洲"], "answer_start": [12]}} for n in (1, 2)]
    lines = ["", json.dumps(rows[0]), " ", "{", json.dumps({**rows[1], "id": "1"}), ""]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join([*lines, json.dumps(rows[1]), ""]))
    with pytest.raises(UserError, match=r"questions.jsonl, line 4: not JSON"):
        read_questions([str(path)])
    bad_rows = BadRows(skip=True)
    found = read_questions([str(path)], bad_rows=bad_rows)
    # 1 and "1" would be one name in the predictions.
    assert [question.id for question in found] == [1, 2] and bad_rows.count == 2
    assert found[0].place == f"{path}, question 1"


def test_rows_without_an_answer(tmp_path):
    """In Hugging Face's squad_v2 an empty list says so; it may be a test file's, too."""
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([{"id": "a", **FLAT, "answers": {"text": [], "answer_start": []}}]))
    (found,) = read_questions([str(path)], with_impossible=True)
    assert found.is_impossible and found.answers == ()
    with pytest.raises(UserError, match=r"it is impossible; .*--version_2"):
        read_questions([str(path)])
    (found,) = read_questions([str(path)], with_impossible=True, needs_answers=False)
    assert not found.is_labelled


def test_truths_as_programs_write_them(tmp_path):
    for said in ("true", "False", 1, 0, None, "1"):
        path = write(tmp_path, entry(0, ("亚洲", 12), is_impossible=said))
        (found,) = read_questions([path], with_impossible=True)
        assert found.is_impossible == (said in ("true", 1, "1"))


def test_dureader_without_a_match(tmp_path):
    row = {**SEARCHED["DuReader, prepared"], "answer_docs": []}
    path = tmp_path / "zhidao.train.json"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "question_id": 8}))
    with pytest.raises(UserError, match=r"question 7: it has several documents .*preproc"):
        read_questions([str(path)])


FAULTS = {
    "the answer '黄河' is not in its passage": entry(7, ("黄河", 0)),
    '"answers" is empty': entry(7),
    '"answers" is missing': entry(7, answers=None),
    "an answer is not a JSON object": entry(7, answers=[["亚洲"]]),
    '"answer_start" is not a whole': entry(7, answers=[{"text": "亚洲", "answer_start": "12"}]),
    '"text" is empty': entry(7, ("", 0)),
    '"question" is empty': entry(7, ("亚洲", 12), question=" "),
    '"question" is missing': {"id": "Q7", "answers": [{"text": "亚洲", "answer_start": 12}]},
    '"question" holds half a character': entry(7, ("亚洲", 12), question="\ud800"),
    '"is_impossible" is neither': entry(7, ("亚洲", 12), is_impossible="no"),
    "its id is used twice": entry(0, ("亚洲", 12), id="Q0"),
}


def test_a_faulty_question(tmp_path):
    for fault, faulty in FAULTS.items():
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
