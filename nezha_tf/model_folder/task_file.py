"""`task.json`: what a run says of its model, so that its folder is enough to use it."""

import json
import os

from nezha_tf.errors import UserError
from nezha_tf.files import read_object, write_text
from nezha_tf.model_folder import values as kinds_of_values
from nezha_tf.model_folder.task_table import TASKS

FILE_NAME = "task.json"
# What the file has of every task beside its name, "task"; the rest is in the task's row of `TASKS`.
COMMON = {
    "do_lower_case": kinds_of_values.BOOL,
    "max_seq_length": kinds_of_values.at_least(1),
    "uses_averages": kinds_of_values.BOOL,
}


def read(folder):
    """Returns what the `task.json` of a folder says, a dict, or None where there is none.

    Raises:
      UserError: it cannot be read, lacks a setting, or has one that cannot be.
    """
    path = os.path.join(folder, FILE_NAME)
    values = read_object(path)
    if values is not None:
        check(path, values)
    return values


def write(folder, settings):
    """Writes `task.json`; it appears whole or not at all.

    Args:
      folder: of the run.
      settings: dict of "task", the keys of `COMMON` and those of the task's row.
    """
    path = os.path.join(folder, FILE_NAME)
    check(path, settings)
    write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def check(path, values):
    """Raises a `UserError` where a dict is not what a `task.json` holds; the path names it."""
    task = values.get("task")
    if not isinstance(task, str) or task not in TASKS:
        raise UserError(f"{path}: task must be one of {', '.join(TASKS)}, not {task!r}")
    for name, kind in {**COMMON, **TASKS[task].settings}.items():
        if name not in values:
            raise UserError(f"{path} lacks {name!r}; it is damaged")
        if not kind.fits(values[name]):
            shown = json.dumps(values[name], ensure_ascii=False)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise UserError(f"{path}: {name} must be {kind.words}, not {shown}")
