"""Writes the files that a run's folder needs, beside the weights, to be used as a model."""

import json
import os

from nezha_tf import files
from nezha_tf.errors import UserError
from nezha_tf.model_folder import task_file
from nezha_tf.model_folder.run_folder import CONFIG_FILE, VOCAB_FILE, read_settings, vocabulary_in


def write_settings(folder, task):
    """Writes `bert_config.json`, `task.json` and `vocab.txt`.

    Args:
      folder: the run's folder.
      task: a `training.task.Task`.

    Raises:
      UserError: see `check`.
    """
    check(folder, task)
    _copy_vocabulary(task.settings.vocab_file, folder)
    task.config.to_json_file(os.path.join(folder, CONFIG_FILE))
    task_file.write(folder, settings_of(task))


def check(folder, task):
    """Checks that a task fits the run in a folder, if there is one.

    Args:
      folder: the run's folder.
      task: a `training.task.Task`.

    Raises:
      UserError: the folder is for another task, or has another vocabulary or another value of
        `do_lower_case` or `layer_mix`.
    """
    wanted = settings_of(task)
    stored = read_settings(folder, wanted["task"])
    if stored and stored["do_lower_case"] != wanted["do_lower_case"]:
        raise UserError(
            f"do_lower_case is {json.dumps(wanted['do_lower_case'])} here, and "
            f"{json.dumps(stored['do_lower_case'])} in the run in {folder}; pass another "
            "--output_dir"
        )
    if stored and stored.get("layer_mix", False) != task.settings.layer_mix:
        there, here = ("without", "with") if task.settings.layer_mix else ("with", "without")
        raise UserError(
            f"the run in {folder} is {there} --layer_mix, and this one {here} it; give it the same "
            "flag, or another --output_dir"
        )
    source, target = task.settings.vocab_file, vocabulary_in(folder)
    if source and target and not files.same_bytes(source, target):
        raise UserError(
            f"--vocab_file={source} is another vocabulary than that of the run in {target}; "
            "pass that one, or another --output_dir"
        )


def settings_of(task):
    """Returns the contents of `task.json` for a `Task`, a dict."""
    settings, own = task.settings, task.task_file_settings()
    common = {
        "do_lower_case": settings.do_lower_case,
        "max_seq_length": getattr(settings, "max_seq_length", None),
        "uses_averages": settings.ema_decay > 0,
    }
    common |= {"layer_mix": True} if settings.layer_mix else {}
    found = {"task": own["task"], **common, **own}
    # JSON has no tuples.
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}


def _copy_vocabulary(source, folder):
    """Copies the vocabulary into the folder, unless there is none or it is there already."""
    if source and not vocabulary_in(folder):
        files.copy(source, os.path.join(folder, VOCAB_FILE))
