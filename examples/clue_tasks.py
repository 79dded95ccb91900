"""The tasks of CLUE for examples/clue.py: programs, published figures, files."""

import os
from typing import NamedTuple

from nezha_tf.tasks.classification import data_sets as of_classes
from nezha_tf.tasks.finetuning import data_sets as part_files
from nezha_tf.tasks.multiple_choice import data_sets as of_choices

# The files of FewCLUE, which the programs read if those of CLUE are not there.
_FEW = ("train_few_all.json", "train_0.json", "dev_few_all.json", "dev_0.json")
_TESTS = (*part_files.CLUE_TESTS, "test.jsonl")


class Task(NamedTuple):
    """A task of CLUE.

    Attributes:
      name: its name, which is also in configs/clue_NAME.flags.
      folders: the possible names of its folder, with and without _public.
      program: what trains it.
      submission: the name of its file for the site, without _predict.json; {} stands for 10 or 11,
        the version of the test set.
      metrics: {metric of the program: (BERT-base, RoBERTa-wwm-ext)}: development figures of
        PaddleNLP's baseline for CLUE, in percent. The first metric counts in the mean.
      are_percent: whether the program's results are in percent.
    """

    name: str
    folders: tuple[str, ...]
    program: str
    submission: str | None
    metrics: dict
    are_percent: bool = False


def _accuracy(*figures):
    return {"accuracy": figures}


CLASSES, CHOICES = "run_classifier.py", "run_multiple_choice.py"
TASKS = (
    Task("afqmc", ("afqmc",), CLASSES, "afqmc", _accuracy(74.63, 74.60)),
    Task("tnews", ("tnews",), CLASSES, "tnews{}", _accuracy(57.13, 58.08)),
    Task("iflytek", ("iflytek",), CLASSES, "iflytek", _accuracy(61.29, 61.23)),
    Task("cmnli", ("cmnli",), CLASSES, "cmnli", _accuracy(80.97, 81.11)),
    Task("ocnli", ("ocnli",), CLASSES, "ocnli_50k", _accuracy(75.22, 76.92)),
    Task("wsc", ("cluewsc2020", "cluewsc", "wsc"), CLASSES, "cluewsc{}", _accuracy(81.91, 88.49)),
    Task("csl", ("csl",), CLASSES, "csl", _accuracy(81.90, 80.77)),
    Task(
        "cmrc2018",
        ("cmrc2018",),
        "run_mrc.py",
        "cmrc2018",
        {"em": (65.30, 68.39), "f1": (86.53, 88.50)},
        are_percent=True,
    ),
    Task("chid", ("chid",), CHOICES, "chid{}", _accuracy(82.01, 83.43)),
    Task("c3", ("c3",), CHOICES, "c3{}", _accuracy(65.38, 68.03)),
    # Of FewCLUE alone.
    Task("bustm", ("bustm",), CLASSES, None, _accuracy()),
)


class Done(NamedTuple):
    """A task that was run, the folder of its data, and that of its run."""

    task: Task
    data: str
    run_dir: str


def data_of(task, root):
    """Returns (the folder of a task's data or None, what is not there or "")."""
    names = [name + end for name in task.folders for end in ("_public", "")]
    paths = [path for name in names if os.path.isdir(path := os.path.join(root, name))]
    lack = f"{root} has no {' or '.join(task.folders)}"
    for path in paths:
        lacking = [what for choices in _file_choices(task) if (what := _lacking(path, choices))]
        if not lacking:
            return path, ""
        lack = f"{path} has no {', and no '.join(lacking)}"
    return None, lack


def _lacking(folder, choices):
    """Returns which files of a part are not in a folder, as text, or "": all are there."""
    paths = part_files.found_in(folder, choices)
    if not paths:
        return part_files.listed(choices)
    found = {os.path.basename(path) for path in paths}
    whole = next(names for names in choices if found <= set(names))
    return " and ".join(name for name in whole if name not in found)


def _file_choices(task):
    """Returns the possible files of training and of evaluation; see `data_sets`."""
    if task.name == "cmrc2018":
        return (("train.json",),), (("dev.json",),)
    data_set = data_sets(task)[task.name]
    return data_set.files["train"], data_set.files["eval"]


def data_sets(task):
    """Returns the data sets of a task's program by name, but for CMRC2018."""
    return (of_classes if task.program == CLASSES else of_choices).DATA_SETS


def training_files(task, data):
    """Returns the paths of what a task is trained and evaluated on, a list."""
    paths = [p for choices in _file_choices(task) for p in part_files.found_in(data, choices)]
    answers = [f"{path.removesuffix('.json')}_answer.json" for path in paths]
    return [*paths, *filter(os.path.exists, answers)]


def test_file(data):
    """Returns the path of the test set in a task's folder, or None."""
    paths = [os.path.join(data, name) for name in _TESTS]
    return next((path for path in paths if os.path.exists(path)), None)


def is_few(task, data):
    """Whether a task's folder has FewCLUE's data; CLUE's figures and site are not for them."""
    return any(os.path.basename(path) in _FEW for path in training_files(task, data))


def predictions_file(task, run_dir):
    """Returns the path of the predictions for a task's test set."""
    name = "predictions.json" if task.name == "cmrc2018" else "predictions.jsonl"
    return os.path.join(run_dir, name)
