"""The files that a run writes beside its weights, so that its folder is enough to use them."""

import os

from nezha_tf.checkpoints import task_file
from nezha_tf.util import files, forms, storage
from nezha_tf.util.errors import UserError

CONFIG_FILE, VOCAB_FILE = "bert_config.json", "vocab.txt"
# The summary of several runs, which names the best run; in their common folder.
SWEEP_FILE = "sweep.json"
_SWEEP = {"best": {"learning_rate": forms.is_finite, "seed": forms.is_count}}


def read_settings(folder, name):
    """Returns the contents of a run's `task.json`, or {} if there is none.

    Args:
      folder: the run's folder.
      name: the name of the task.

    Raises:
      UserError: see `task_file.read`; or the file is for another task.
    """
    found = task_file.read(folder) or {}
    if found and found["task"] != name:
        raise UserError(
            f"{folder} is the folder of a run of another task ({found['task']}, not {name}); "
            "pass another --output_dir"
        )
    return found


def has_settings(folder):
    """Whether the folder has a `task.json`."""
    return storage.exists(os.path.join(folder, task_file.FILE_NAME))


def vocabulary_in(folder):
    """Returns the path of the vocabulary in a run's folder, or None."""
    path = os.path.join(folder, VOCAB_FILE)
    return path if storage.exists(path) else None


def sweep_member(folder, learning_rate, seed):
    """Returns the folder of one run in a folder of several runs."""
    return os.path.join(folder, f"lr_{learning_rate}", f"seed_{seed}")


def best_sweep_member(folder):
    """Returns the folder of the best of several runs, or None if the folder is not of several runs.

    Raises:
      UserError: `SWEEP_FILE` is damaged.
    """
    path = os.path.join(folder, SWEEP_FILE)
    found = files.read_object(path)
    if found is None:
        return None
    forms.require(found, _SWEEP, path)
    return sweep_member(folder, found["best"]["learning_rate"], found["best"]["seed"])
