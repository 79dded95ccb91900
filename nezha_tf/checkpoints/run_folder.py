"""The files that a run writes beside its weights, so that its folder is enough to use them."""

import json
import os

from nezha_tf.checkpoints.task_row import BOOL, at_least
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.util import forms, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import read_object, write_text

CONFIG_FILE, VOCAB_FILE = "bert_config.json", "vocab.txt"
# The summary of several runs, which names the best run; in their common folder.
SWEEP_FILE = "sweep.json"
_SWEEP = {"best": {"learning_rate": forms.is_finite, "seed": forms.is_count}}
TASK_FILE = "task.json"
# The keys of every task beside "task"; the other keys are in the task's row of `TASKS`.
COMMON = {
    "do_lower_case": BOOL,
    "max_seq_length": at_least(1),
    "uses_averages": BOOL,
}
# What may be there in every task: runs that do not use it, and all older ones, do not write it.
OPTIONAL = {"layer_mix": BOOL}
METRICS_FILE = "metrics.jsonl"
_ENTRY = {"step": forms.is_count, str: forms.is_number}


def read_task(folder):
    """Returns the contents of a folder's `task.json`, a dict, or None if there is none."""
    path = os.path.join(folder, TASK_FILE)
    values = read_object(path)
    if values is not None:
        check_task(path, values)
    return values


def write_task(folder, settings):
    """Writes a complete `task.json`, or no file after an error."""
    path = os.path.join(folder, TASK_FILE)
    check_task(path, settings)
    write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def check_task(path, values):
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


def read_settings(folder, name):
    """Returns the contents of `task.json`, or {}; a file for another task is a `UserError`."""
    values = read_task(folder) or {}
    if values and values["task"] != name:
        raise UserError(
            f"{folder} is the folder of a run of another task ({values['task']}, not {name}); "
            "pass another --output_dir"
        )
    return values


def has_settings(folder):
    """Whether the folder has a `task.json`."""
    return storage.exists(os.path.join(folder, TASK_FILE))


def vocabulary_in(folder):
    """Returns the path of the vocabulary in a run's folder, or None."""
    path = os.path.join(folder, VOCAB_FILE)
    return path if storage.exists(path) else None


def sweep_member(folder, learning_rate, seed):
    """Returns the folder of one run in a folder of several runs."""
    return os.path.join(folder, f"lr_{learning_rate}", f"seed_{seed}")


def best_sweep_member(folder):
    """Returns the folder of the best of several runs, or None if the folder is not of several."""
    path = os.path.join(folder, SWEEP_FILE)
    values = read_object(path)
    if values is None:
        return None
    forms.require(values, _SWEEP, path)
    return sweep_member(folder, values["best"]["learning_rate"], values["best"]["seed"])


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl`, a list of dict, by rising step.

    The last line may be incomplete, as a killed run leaves it, and then does not count; another
    line that is not as runs write it is a `UserError`.
    """
    path = os.path.join(folder, METRICS_FILE)
    if not storage.exists(path):
        return []
    with storage.open_binary(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not line.endswith(b"\n"):
                break
            raise UserError(
                f"{path}, line {number}: not JSON; restore the file, or remove the line"
            ) from error
        forms.require(entries[-1], _ENTRY, f"{path}, line {number}")
    return entries
