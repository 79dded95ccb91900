"""Reads and writes `task.json`, a run's settings that programs need to use its model."""

import json
import os

from nezha_tf.checkpoints import values as kinds_of_values
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, write_text

FILE_NAME = "task.json"
# The keys of every task beside "task"; the other keys are in the task's row of `TASKS`.
COMMON = {
    "do_lower_case": kinds_of_values.BOOL,
    "max_seq_length": kinds_of_values.at_least(1),
    "uses_averages": kinds_of_values.BOOL,
}
# What may be there in every task: runs that do not use it, and all older ones, do not write it.
OPTIONAL = {"layer_mix": kinds_of_values.BOOL}


def read(folder):
    """Returns the contents of a folder's `task.json`, a dict, or None if there is none.

    Raises:
      UserError: the file cannot be read, lacks a setting, or has an impossible value.
    """
    path = os.path.join(folder, FILE_NAME)
    values = read_object(path)
    if values is not None:
        check(path, values)
    return values


def write(folder, settings):
    """Writes a complete `task.json`, or no file after an error.

    Args:
      folder: the run's folder.
      settings: dict of "task", the keys of `COMMON` and those of the task's row; keys of
        `OPTIONAL` and of the row's `optional` may be there.
    """
    path = os.path.join(folder, FILE_NAME)
    check(path, settings)
    write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def check(path, values):
    """Raises a `UserError` if a dict is not valid as `task.json`; `path` is for the message."""
    task = values.get("task")
    if not isinstance(task, str) or task not in TASKS:
        raise UserError(f"{path}: task must be one of {', '.join(TASKS)}, not {task!r}")
    row = TASKS[task]
    optional = {**row.optional, **OPTIONAL}
    for name, kind in {**COMMON, **row.settings, **optional}.items():
        if name not in values:
            if name in optional:
                continue
            raise UserError(f"{path} lacks {name!r}; it is damaged, restore it")
        if not kind.fits(values[name]):
            shown = json.dumps(values[name], ensure_ascii=False)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise UserError(f"{path}: {name} must be {kind.words}, not {shown}")
