"""examples/clue.py: its table, and the files for CLUE's site."""

import json
import re
import zipfile

import pytest
from clue_files import MARKS, PAIR, ROWS, SPANS, TASKS, clue, flags_in, in_zip, results, write

from nezha_tf.util.errors import UserError


@pytest.fixture
def given_flags(tmp_path):
    return flags_in(tmp_path)


def test_the_table(given_flags):
    _, _, out = given_flags
    names = ("afqmc", "cmrc2018", "bustm")
    done = [clue.Done(TASKS[name], "", str(out / name)) for name in names]
    write(out / "cmrc2018" / "eval_results.json", {"f1": 50.0, "em": 25.0, "loss": 1.0})
    write(out / "bustm" / "eval_results.json", {"accuracy": 0.75})
    rates = [
        {
            "learning_rate": rate,
            "mean": {"eval accuracy": mean},
            "standard_deviation": {"eval accuracy": 0.0123},
        }
        for rate, mean in ((1e-5, 0.6), (2e-5, 0.7))
    ]
    runs = [{"learning_rate": rate} for rate in (1e-5, 1e-5, 1e-5, 2e-5, 2e-5, 2e-5)]
    write(
        out / "afqmc" / "sweep.json",
        {"best": {"learning_rate": 2e-5}, "rates": rates, "runs": runs},
    )
    lines = [line.split() for line in results.table(done).splitlines()[1:]]
    assert lines == [
        ["afqmc", "accuracy", "70.00", "±", "1.23", "(3)", "74.63", "74.60"],
        ["cmrc2018", "em", "25.00", "65.30", "68.39"],
        ["cmrc2018", "f1", "50.00", "86.53", "88.50"],
        ["bustm", "accuracy", "75.00"],
        # Over the tasks that have published figures; of CMRC2018 the exact match.
        ["mean", "of", "2", "tasks", "47.50", "69.97", "71.50"],
    ]
    (out / "bustm" / "eval_results.json").unlink()
    with pytest.raises(UserError, match="bustm has no result accuracy; delete the folder"):
        results.table(done)


def test_few_examples_have_no_published_figures_and_no_submission(given_flags):
    """CLUE's figures and site are for other data than FewCLUE's, which have the same tasks."""
    flags, data, out = given_flags
    done = []
    for name, train in (
        *(("afqmc", "train.json"), ("tnews", "train.json"), ("csl", "train_few_all.json")),
        *(("chid", "train_0.json"), ("ocnli", "train.50k.json")),
    ):
        write(data / name / train)
        write(data / name / "test.json", ROWS[name])
        write(out / name / "eval_results.json", {"accuracy": 0.5})
        write(out / name / "predictions.jsonl", {"prediction": "0"})
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    # The programs read CLUE's file where both are.
    write(data / "ocnli" / "train_few_all.json")
    *lines, last = results.table(done).splitlines()[1:]
    assert [line.split() for line in lines] == [
        ["afqmc", "accuracy", "50.00", "74.63", "74.60"],
        ["tnews", "accuracy", "50.00", "57.13", "58.08"],
        ["csl", "accuracy", "50.00"],
        ["chid", "accuracy", "50.00"],
        ["ocnli", "accuracy", "50.00", "75.22", "76.92"],
        ["mean", "of", "3", "tasks", "50.00", "68.99", "69.87"],
    ]
    assert last.startswith("csl, chid: FewCLUE's data") and "submit.zip" in last
    results.write_submission(done, flags)
    with zipfile.ZipFile(out / "submit.zip") as archive:
        names = [f"{name}_predict.json" for name in ("afqmc", "tnews11", "ocnli_50k")]
        assert archive.namelist() == names
    assert "no submit.zip" in results.write_submission(done[2:4], flags)


def submission(given_flags, tests, predicted):
    """Writes test sets and predictions; returns (list of `Done`, the lines on submit.zip)."""
    flags, data, out = given_flags
    done = []
    for name, (test, *rows) in tests.items():
        write(data / name / test, *rows)
        done.append(clue.Done(TASKS[name], str(data / name), str(out / name)))
    for name, rows in predicted.items():
        file = "predictions.json" if name == "cmrc2018" else "predictions.jsonl"
        write(out / name / file, *rows)
    return done, results.write_submission(done, flags)


C3 = [["甲"], [{"question": "何？", "choice": ["乙", "丙", "丁"]}] * 2, "1"]
CMRC = {"data": [{"paragraphs": [{"context": "甲", "qas": [{"id": "q", "question": "何？"}]}]}]}


def test_the_files_for_the_site(given_flags):
    flags, _, out = given_flags
    tests = {
        "tnews": ("test1.0.json", {"id": 7, "sentence": "甲"}),
        "ocnli": ("test.json", PAIR, PAIR),
        "wsc": ("test1.1.json", {"id": 0, "text": "甲乙", "target": SPANS}),
        "chid": ("test1.1.json", {**ROWS["chid"], "content": [" ".join(MARKS)]}),
        "c3": ("test1.1.json", [C3]),
        "cmrc2018": ("test.json", CMRC),
        "bustm": ("test.json", PAIR),
    }
    predicted = {
        "tnews": [{"id": "7", "prediction": "115"}],
        # A text in the predictions may have what other languages take for the end of a line.
        "ocnli": [{"text": "\u2028", "prediction": "neutral"}, {"prediction": "entailment"}],
        "wsc": [{"id": "0", "prediction": "true"}],
        "chid": [{"id": mark, "prediction": 3 - 3 * at} for at, mark in enumerate(MARKS)],
        "c3": [{"id": "0", "prediction": 2}, {"id": "1", "prediction": 1}],
        "cmrc2018": [{"q": "答案"}],
    }
    done, line = submission(given_flags, tests, predicted)
    found = in_zip(out)
    assert line == f"{out}/submit.zip: {', '.join(found)}"
    assert json.loads(found.pop("chid11_predict.json")) == {MARKS[0]: 3, MARKS[1]: 0}
    assert json.loads(found.pop("cmrc2018_predict.json")) == {"q": "答案"}
    assert found == {
        "tnews10_predict.json": '{"id": 7, "label": "115"}\n',
        "ocnli_50k_predict.json": (
            '{"id": 0, "label": "neutral"}\n{"id": 1, "label": "entailment"}\n'
        ),
        "cluewsc11_predict.json": '{"id": 0, "label": "true"}\n',
        "c311_predict.json": '{"id": 0, "label": 2}\n{"id": 1, "label": 1}\n',
    }
    flags.c3_format = "list"
    results.write_submission([each for each in done if each.task.name == "c3"], flags)
    assert in_zip(out) == {"c311_predict.json": "[2, 1]\n"}
    without = [each for each in done if each.task.name == "bustm"]
    assert "no submit.zip" in results.write_submission(without, flags)


def test_what_is_not_in_the_submission_is_told(given_flags):
    """The site compares line by line, so a file without a line is wrong from there on."""
    tests = {
        "afqmc": ("test.json", PAIR, PAIR),
        "tnews": ("test.json", {"sentence": "甲"}, {"sentence": ""}, {"sentence": "乙"}),
        "csl": ("none.json",),
        "cmrc2018": ("test.json", CMRC),
        "chid": ("test.json", ROWS["chid"]),
        "c3": ("test.json", [[["甲"]], C3]),
    }
    row = {"prediction": "0"}
    predicted = {"afqmc": [row] * 2, "tnews": [row] * 2, "cmrc2018": [{}], "chid": [row]}
    _, told = submission(given_flags, tests, {**predicted, "c3": [row] * 2})
    data, out = given_flags[1:]
    assert list(in_zip(out)) == ["afqmc_predict.json"]

    def unlike(name, found, asked):
        return (
            f"{name}: not in submit.zip, {found} predictions for the {asked} rows of "
            f"{data}/{name}/test.json; mend its bad rows"
        )

    assert told.splitlines() == [
        unlike("tnews", 2, 3),
        "csl: not in submit.zip, its folder has no test set",
        unlike("cmrc2018", 0, 1),
        unlike("chid", 1, 2),
        unlike("c3", 2, 3),
        f"{out}/submit.zip: afqmc_predict.json",
    ]
    (out / "cmrc2018" / "predictions.json").write_text("{")
    _, told = submission(given_flags, {"cmrc2018": tests["cmrc2018"]}, {})
    assert f"{out}/cmrc2018/predictions.json or {data}/cmrc2018/test.json is damaged: " in told
    (out / "afqmc" / "predictions.jsonl").unlink()
    _, told = submission(given_flags, {"afqmc": tests["afqmc"]}, {})
    assert told == (
        f"afqmc: not in submit.zip, there is no {out}/afqmc/predictions.jsonl\n"
        f"nothing to pack: no submit.zip; {out}/submit.zip is of an earlier run"
    )
    twice = {"id": 7, **PAIR}
    for rows, why in (
        (["{", row], "is damaged: Expecting"),
        (['{"id": 3}', row], "is damaged: line 1 has no prediction"),
        ([{"id": "7", **row}] * 2, "2 rows of .* have the id 7"),
    ):
        text = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in rows)
        (out / "afqmc" / "predictions.jsonl").write_text(text)
        _, told = submission(given_flags, {"afqmc": ("test.json", twice, twice)}, {})
        assert re.match(f"afqmc: not in submit.zip, .*{why}", told), told


@pytest.mark.parametrize(
    "given, there",
    (
        (["7", "8"], [7, 8]),
        (["-1", "0"], [-1, 0]),
        (["007", "+1"], ["007", "+1"]),
        (["甲", "²"], ["甲", "²"]),
        # A row without an id: numbers, of which none is another row's id.
        (["1", None], [0, 1]),
    ),
)
def test_ids_are_as_the_test_set_has_them(given_flags, given, there):
    rows = [{"id": name, "prediction": "0"} for name in given]
    submission(given_flags, {"afqmc": ("test.json", PAIR, PAIR)}, {"afqmc": rows})
    lines = in_zip(given_flags[2])["afqmc_predict.json"].splitlines()
    assert [json.loads(line)["id"] for line in lines] == there
