"""Both formats of files with predictions."""

import csv
import json

from nezha_tf.tasks.finetuning.predictions import write_predictions

ENTRIES = [
    {"line": 1, "text": "一\t二\n三", "label": None, "probabilities": {"好": 0.25, "b": 0.75}},
    {"line": 3, "text": '"引"', "label": "好", "probabilities": {"好": 1 / 3, "b": 1e-9}},
    {"line": 4, "text": "x", "spans": [{"text": "a\tb", "score": 0.5}], "prediction": []},
]


def test_lines_of_json_hold_what_there_is(tmp_path):
    path = write_predictions(str(tmp_path), "jsonl", ENTRIES)
    assert path == str(tmp_path / "predictions.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [list(line) for line in lines] == [
        ["line", "text", "probabilities"],
        ["line", "text", "label", "probabilities"],
        ["line", "text", "spans", "prediction"],
    ]
    assert lines[0]["text"] == ENTRIES[0]["text"]
    assert lines[1]["probabilities"] == {"好": 0.333333, "b": 1e-9}


def test_columns_parted_by_tabs(tmp_path):
    path = write_predictions(str(tmp_path), "tsv", ENTRIES)
    assert path == str(tmp_path / "predictions.tsv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = ["line", "text", "probabilities/好", "probabilities/b", "label", "spans", "prediction"]
    assert rows == [
        names,
        ["1", "一 二 三", "0.25", "0.75", "", "", ""],
        ["3", '"引"', "0.333333", "1e-09", "好", "", ""],
        ["4", "x", "", "", "", '[{"text": "a\\tb", "score": 0.5}]', "[]"],
    ]
