"""What a run leaves beside its weights, so that its folder is enough to use them."""

import os

from nezha_tf import files
from nezha_tf.errors import UserError
from nezha_tf.model_folder import task_file

CONFIG_FILE, VOCAB_FILE = "bert_config.json", "vocab.txt"
# In the folder of several runs: what they came to, and which was the best.
SWEEP_FILE = "sweep.json"


def read_settings(folder, name):
    """Returns what the `task.json` of a task's folder says, or {} where there is none.

    Args:
      folder: of the run.
      name: of the task.

    Raises:
      UserError: as for `task_file.read`, or it is of another task.
    """
    found = task_file.read(folder) or {}
    if found and found["task"] != name:
        raise UserError(
            f"{folder} is the folder of a run of another task ({found['task']}, not {name}); "
            "pass another --output_dir"
        )
    return found


def has_settings(folder):
    """Whether a run has left its `task.json` there."""
    return os.path.exists(os.path.join(folder, task_file.FILE_NAME))


def vocabulary_in(folder):
    """Returns the path of the vocabulary that a run has left in a folder, or None."""
    path = os.path.join(folder, VOCAB_FILE)
    return path if os.path.exists(path) else None


def sweep_member(folder, learning_rate, seed):
    """Returns the folder of one of the runs in a folder of several."""
    return os.path.join(folder, f"lr_{learning_rate}", f"seed_{seed}")


def best_sweep_member(folder):
    """Returns the folder of the best of several runs, or None where the folder is not of such.

    Raises:
      UserError: a damaged file that tells of the runs.
    """
    path = os.path.join(folder, SWEEP_FILE)
    found = files.read_object(path)
    if found is None:
        return None
    try:
        return sweep_member(folder, found["best"]["learning_rate"], found["best"]["seed"])
    except (LookupError, TypeError) as error:
        raise UserError(f"{path} does not say which run is the best; it is damaged") from error
