"""The model card of a fine-tuned model: what it is, what it was made of, and what it is worth."""

import datetime
import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from os.path import isfile

from absl import flags as absl_flags

from nezha_tf.training.checkpoint import RunCheckpoints
from nezha_tf.training.run import flag_text

FILE_NAME = "model_card.md"
PACKAGES = ("nezha_tf", "tensorflow", "tensorflow-text", "keras", "numpy")
# Flags that name what goes in; a folder stands for the files in it.
INPUT_FLAGS = ("_file", "data_dir")


def text_of(task, description, results):
    """Returns the card of a run.

    Args:
      task: a `FineTuning`.
      description: a line on the model.
      results: dict of "train NAME", "eval NAME" and "predict NAME" to number.
    """
    flags = task.flags
    given = changed_flags(flags)
    sections = (
        ("Results", _table(("metric", "value"), _rounded(results))),
        ("Data", "\n".join(f"- {note}" for note in task.notes)),
        ("", _table(("part", "inputs"), _inputs(task))),
        ("", _table(("flag", "file", "bytes", "SHA-256"), input_files(flags))),
        ("Flags that are not the defaults", _block("\n".join(given))),
        ("Configuration", _block(json.dumps(task.config.to_dict(), indent=2, sort_keys=True))),
        ("Versions", _table(("", "version"), versions())),
        ("Use", _block(_command(flags))),
    )
    parts = [f"# {os.path.basename(os.path.normpath(flags['output_dir']))}", _origin(task)]
    parts[1:1] = [f"{description[0].upper()}{description[1:]}."]
    for title, text in sections:
        parts += [f"## {title}"] if title else []
        parts += [text] if text else []
    return "\n\n".join(parts) + "\n"


def changed_flags(flags):
    """Returns the lines of a flag file for those that differ from the program's defaults.

    Among them are those that follow from the data.
    """
    known, lines = absl_flags.FLAGS, []
    for name, value in sorted(flags.items()):
        default = known[name].default if name in known else None
        if value is not None and (default is None or flag_text(value) != flag_text(default)):
            lines.append(f"--{name}={flag_text(value)}")
    return lines


def input_files(flags):
    """Returns (flag, path, bytes, SHA-256) of each local file that a flag names, sorted."""
    rows = []
    for flag in sorted(name for name in flags if name.endswith(INPUT_FLAGS) and flags[name]):
        value = flag_text(flags[flag])
        if os.path.isdir(value):
            value = os.path.join(glob.escape(value), "*")
        paths = {path for pattern in value.split(",") for path in glob.glob(pattern.strip())}
        rows += [(flag, path, *_size_and_hash(path)) for path in sorted(paths) if isfile(path)]
    return rows


def versions():
    """Returns (name, version) of Python and of the packages that are installed."""
    rows = [("python", platform.python_version())]
    for name in PACKAGES:
        try:
            rows.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:  # ours, run without being installed
            continue
    return rows


def _origin(task):
    """Returns how the model was made, and which checkpoint it is."""
    flags, day = task.flags, datetime.datetime.now(datetime.UTC).date()
    start = flags["init_checkpoint"]
    start = f"the checkpoint `{start}`" if start else "random weights"
    checkpoints = RunCheckpoints(flags["output_dir"], {}, best_metric=task.best_metric)
    best, steps = checkpoints.best(), checkpoints.steps()
    lines = [f"Fine-tuned by `{_program()}` from {start}; this card was written on {day}."]
    if best and best["global_step"] in steps:
        step, why = best["global_step"], f", the best by {task.best_metric.name}"
    else:
        step, why = steps[-1], ", the last"
    lines.append(f"The model is `{checkpoints.path(step)}`{why}.")
    if flags["ema_decay"]:
        lines.append("It is used with the averages of its weights (`--ema_decay`).")
    return "\n".join(lines)


def _inputs(task):
    return [(part, f"{len(found.arrays['input_ids']):,}") for part, found in task.examples.items()]


def _command(flags):
    """Returns the command that predicts with the model."""
    folder = flags["output_dir"]
    lines = [f"python {_program()} --flagfile={os.path.join(folder, 'run.flags')}"]
    lines.append("--nodo_train --nodo_eval --do_predict")
    if "predict_file" in flags:
        lines.append("--predict_file=FILE")
    return " \\\n    ".join(lines)


def _program():
    return os.path.basename(sys.argv[0])


def _rounded(results):
    shown = {name: value for name, value in results.items() if "trust_ratio/" not in name}
    return [(name, f"{value:.6g}") for name, value in shown.items()]


def _size_and_hash(path):
    with open(path, "rb") as file:
        return os.path.getsize(path), hashlib.file_digest(file, "sha256").hexdigest()


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _block(text):
    return f"```\n{text}\n```"
