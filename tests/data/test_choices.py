"""Files of questions with choices: CLUE's and FewCLUE's forms, rows of one's own, and faults."""

import collections
import gzip
import json

import pytest

from nezha_tf.data.choices import ChoiceColumns, read_c3, read_chid, read_own
from nezha_tf.data.lines import BadRows
from nezha_tf.util.errors import UserError

C3 = [
    [["男：走吗？", "女：不走。"], [
        {"question": "女的走吗？", "choice": ["走", "不走"], "answer": "不走"},
        {"question": "谁问？", "choice": ["男的", "女的", "老师"], "answer": "男的"},
    ], "1-1"],
]  # fmt: skip
CHID = {
    "groupID": 3,
    "content": ["他“#idiom000001#”，又#idiom000002#…", "无——空"],
    "candidates": ["画蛇添足", "守株待兔", "一心一意"],
}
OWN = ChoiceColumns("context", "question", "choices", "answer", "text")


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_c3(tmp_path):
    first, second = read_c3(write(tmp_path / "c3.json", C3))
    assert first.context == second.context == "男：走吗？\n女：不走。"
    assert (first.id, first.text, first.choices, first.answer) == (
        "0", "女的走吗？", ("走", "不走"), 1
    )  # fmt: skip
    assert second.choices == ("男的", "女的", "老师") and second.answer == 0
    assert first.group is None and first.blank is None


def test_c3_to_predict(tmp_path):
    """Test sets may lack the texts' ids; their answers may be empty, and their ids null."""
    first = {"question": "何？", "choice": ["甲", "乙"], "answer": "", "id": 7}
    second = {"question": "谁？", "choice": ["甲", "乙"], "id": None}
    path = write(tmp_path / "test.json", [[["天"], [first, second]]])
    found = read_c3(path, needs_answers=False)
    assert [(question.id, question.answer) for question in found] == [("7", None), ("1", None)]
    with pytest.raises(UserError, match='question 1: "answer" is missing'):
        read_c3(path)


def test_of_equal_choices_of_c3_the_last_is_right(tmp_path):
    """`c3Processor` of nlpdata/c3 compares all choices with the answer and keeps the last."""
    entry = {"question": "何？", "choice": ["甲", "乙", "甲", "丙"], "answer": "甲"}
    (found,) = read_c3(write(tmp_path / "c3.json", [[["天"], [entry], "1"]]))
    assert found.answer == 2
    row = {"context": "天", "question": "何？", "choices": ["甲", "乙", "甲"], "answer": "甲"}
    assert read_own(write(tmp_path / "own.jsonl", row), OWN)[0].answer == 0


def test_ids_do_not_depend_on_the_rows_before(tmp_path):
    """Predictions without a bad row must still say which question they are for."""
    good, bad = {"question": "何？", "choice": ["甲", "乙"]}, {"question": "何？"}
    texts = [[[" "], [good, good], "1"], [["天"], [bad, good], "2"], 3, [["天"], [good], "4"]]
    path = write(tmp_path / "c3.json", texts)
    bad_rows = BadRows(skip=True)
    found = read_c3(path, needs_answers=False, bad_rows=bad_rows)
    assert [question.id for question in found] == ["3", "4"] and bad_rows.count == 3
    assert [question.place for question in found] == [
        f"{path}, text 2, question 2",
        f"{path}, text 4, question 1",
    ]
    row = {"context": "天", "question": "何？", "choices": ["1", "0"]}
    path = write(tmp_path / "own.jsonl", row, {**row, "choices": []}, row)
    found = read_own(path, OWN, needs_answers=False, bad_rows=bad_rows)
    assert [question.id for question in found] == ["1", "3"] and bad_rows.count == 4


def test_chid_of_clue(tmp_path):
    """The passages' punctuation is that of CLUE's program; the answers lie beside."""
    path = tmp_path / "train.json.gz"
    rows = (CHID, {**CHID, "content": ["#idiom000009#"]})
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    path = str(path)
    with pytest.raises(UserError, match=r"there is no .*train_answer\.json; fetch it"):
        read_chid(path)
    assert all(q.answer is None for q in read_chid(path, needs_answers=False))
    answers = {"#idiom000001#": 2, "#idiom000002#": 0, "#idiom000009#": 1}
    write(tmp_path / "train_answer.json", answers)
    found = read_chid(path)
    assert [(q.id, q.blank, q.answer) for q in found] == [(m, m, a) for m, a in answers.items()]
    assert found[0].context == found[1].context == '他"#idiom000001#"，又#idiom000002#...'
    assert found[0].group == found[1].group != found[2].group
    assert found[0].text is None and found[0].choices == tuple(CHID["candidates"])


def test_chid_of_fewclue(tmp_path):
    row = {"id": 7, "content": "他#idiom#。", "candidates": ["甲", "乙"], "answer": 1}
    (found,) = read_chid(write(tmp_path / "dev.json", row))
    assert (found.id, found.blank, found.answer) == ("7", "#idiom#", 1)


def test_rows_of_ones_own(tmp_path):
    row = {"context": "天", "question": "何？", "choices": ["1", "0"], "answer": "0"}
    (found,) = read_own(write(tmp_path / "a.jsonl", row), OWN)
    assert (found.context, found.text, found.answer) == ("天", "何？", 1)
    by_index = OWN._replace(answer_type="index", question=None)
    row = {"context": "天#idiom#", "choices": ["1", "0"], "answer": 0}
    (found,) = read_own(write(tmp_path / "b.jsonl", row), by_index)
    assert (found.blank, found.answer) == ("#idiom#", 0)
    path = tmp_path / "c.tsv"
    path.write_text('context\tquestion\tchoices\tanswer\n天\t何？\t["好", "坏"]\t坏\n', "utf-8")
    assert read_own(str(path), OWN)[0].answer == 1
    del row["answer"]
    path = write(tmp_path / "d.jsonl", row)
    assert read_own(path, by_index, needs_answers=False)[0].answer is None
    with pytest.raises(UserError, match=r'd\.jsonl, line 1: "answer" is missing'):
        read_own(path, by_index)
    # Two marks share a "#", so the second one is text.
    row = {"context": "天#idiom1#idiom#", "choices": ["1", "0"], "answer": 0}
    with pytest.raises(UserError, match=r'e\.jsonl, line 1: "context" must have one blank'):
        read_own(write(tmp_path / "e.jsonl", row), by_index)


def changed(**changes):
    return [
        [["天"], [{"question": "何？", "choice": ["甲", "乙"], "answer": "甲", **changes}], "1"]
    ]


def test_faults_are_told_or_counted(tmp_path):
    for read, value, message in (
        (read_c3, {}, "is not a list of"),
        (read_c3, [3], 'text 1: not \\[lines, \\[{"question'),
        (read_c3, [["天", [], "1"]], "text 1: the lines are not a list of texts"),
        (read_c3, [[[" "], [], "1"]], "text 1: the text is empty"),
        (read_c3, [[["天"], [3], "1"]], "text 1, question 1: not a JSON object"),
        (read_c3, changed(answer="丙"), "question 1: the answer '丙' is none of the 2 choices"),
        (read_c3, changed(answer=None), 'question 1: "answer" is missing'),
        (read_c3, changed(choice=["甲"]), "not a list of at least two choices"),
        (read_c3, changed(choice=["甲", 3]), "a choice of .* is missing or not a text"),
        (read_c3, changed(question="\ud800"), '"question" holds half a character'),
        (read_chid, {**CHID, "answer": 3}, "line 1: the answer 3 is not below 3"),
        (read_chid, {**CHID, "answer": "9" * 5000}, "line 1: the answer 9+ is not below 3"),
        (read_chid, {**CHID, "answer": -1}, "line 1: the answer '-1' is not the number"),
        (read_chid, {**CHID, "answer": 0, "content": "无"}, "line 1: .* no blank such as"),
        (read_chid, {**CHID, "answer": 0, "candidates": "甲"}, "at least two choices"),
        (read_chid, {"candidates": ["甲", "乙"]}, 'line 1: "content" is missing'),
    ):
        path = write(tmp_path / "bad.json", value)
        with pytest.raises(UserError, match=message) as error:
            read(path)
        assert "bad.json" in str(error.value) and "\n" not in str(error.value)
        if value:  # a file of another format is no bad row
            bad_rows = BadRows(skip=True)
            assert read(path, bad_rows=bad_rows) == [] and bad_rows.count == 1


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*none\.json"):
        read_c3(str(tmp_path / "none.json"))
    (tmp_path / "half.json").write_bytes(json.dumps(C3).encode()[:-9])
    with pytest.raises(UserError, match=r"half\.json, text 1: not JSON"):
        read_c3(str(tmp_path / "half.json"))
    write(tmp_path / "dev.json", CHID)
    write(tmp_path / "dev_answer.json", [1])
    with pytest.raises(UserError, match=r"dev_answer\.json is not an object"):
        read_chid(str(tmp_path / "dev.json"))


def test_the_real_files(shared_data):
    folder = shared_data / "c3"
    found = [q for part in "md" for q in read_c3(str(folder / f"c3-{part}-dev.json"))]
    assert len(found) == 3816  # as CLUE counts them
    assert collections.Counter(len(q.choices) for q in found) == {4: 3181, 3: 465, 2: 170}
    few = read_chid(str(shared_data / "fewclue" / "chid" / "dev_few_all.json"))
    assert len(few) == 202 and {len(q.choices) for q in few} == {7}
