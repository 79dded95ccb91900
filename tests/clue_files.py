"""The files of CLUE's tasks, for the tests of examples/clue.py."""

import json
import zipfile
from types import SimpleNamespace

from examples_programs import program

clue, results, tasks = map(program, ("clue", "clue_results", "clue_tasks"))
TASKS = {task.name: task for task in clue.TASKS}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


PAIR = {"sentence1": "甲", "sentence2": "乙"}
SPANS = {"span1_text": "甲", "span1_index": 0, "span2_text": "乙", "span2_index": 1}
MARKS = [f"#idiom{number:06}#" for number in (1, 2)]
# A row of each task's file, for `add_files`.
ROWS = {
    **{name: {**PAIR, "label": "0"} for name in ("afqmc", "bustm")},
    **{name: {**PAIR, "label": "neutral"} for name in ("cmnli", "ocnli")},
    "tnews": {"sentence": "甲", "label": "100"},
    "iflytek": {"sentence": "甲", "label": "0"},
    "wsc": {"text": "甲乙", "target": SPANS, "label": "true"},
    "csl": {"abst": "甲", "keyword": ["乙"], "label": "0"},
    "chid": {"content": MARKS, "candidates": ["甲", "乙"]},
}


def add_files(folder, name, train="train.json"):
    """Writes the files of training and development of a task."""
    for file in (train, train.replace("train", "dev").replace("50k.", "")):
        write(folder / file, ROWS[name])


def flags_in(folder):
    """Returns the flags of the program, and the folders of data, which it makes, and results."""
    data, out = folder / "data", folder / "out"
    data.mkdir()
    names = {"clue_data": data, "output_dir": out, "model_folder": folder, "c3_format": "lines"}
    return SimpleNamespace(**{name: str(value) for name, value in names.items()}), data, out


def in_zip(out):
    """Returns the texts of the files in submit.zip, by name."""
    with zipfile.ZipFile(out / "submit.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}
