"""The folder of a run as a model's: beside the weights what it takes to use them."""

import json
import os
import shutil

from nezha_tf import files, task_file
from nezha_tf.errors import UserError

CONFIG_FILE, VOCAB_FILE = "bert_config.json", "vocab.txt"
# In the folder of several runs: what they came to, and which was the best.
SWEEP_FILE = "sweep.json"


def write_settings(folder, task):
    """Writes `bert_config.json`, `task.json` and `vocab.txt`.

    Args:
      folder: of the run.
      task: a `training.task.Task`.

    Raises:
      UserError: as for `check`.
    """
    check(folder, task)
    _copy_vocabulary(task.flags["vocab_file"], folder)
    task.config.to_json_file(os.path.join(folder, CONFIG_FILE))
    task_file.write(folder, settings_of(task))


def check(folder, task):
    """Looks at whether a task is that of the run in a folder, where there is one.

    Args:
      folder: of the run.
      task: a `training.task.Task`.

    Raises:
      UserError: the folder is of another task, has another vocabulary, or its texts are
        lower-cased and the task's are not, or the other way round.
    """
    settings = settings_of(task)
    stored = read_settings(folder, settings["task"])
    if stored and stored["do_lower_case"] != settings["do_lower_case"]:
        raise UserError(
            f"do_lower_case is {json.dumps(settings['do_lower_case'])} here, and "
            f"{json.dumps(stored['do_lower_case'])} in the run in {folder}; pass another "
            "--output_dir"
        )
    source, target = task.flags["vocab_file"], vocabulary_in(folder)
    if source and target and not files.same_bytes(source, target):
        raise UserError(
            f"--vocab_file={source} is another vocabulary than that of the run in {target}; "
            "pass that one, or another --output_dir"
        )


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


def settings_of(task):
    """Returns what `task.json` says of a `Task`."""
    flags, own = task.flags, task.settings()
    common = {
        "do_lower_case": flags["do_lower_case"],
        "max_seq_length": flags.get("max_seq_length"),
        "uses_averages": flags["ema_decay"] > 0,
    }
    return {"task": own["task"], **common, **own}


def run_folder(folder, learning_rate, seed):
    """Returns the folder of one of the runs in a folder of several."""
    return os.path.join(folder, f"lr_{learning_rate}", f"seed_{seed}")


def best_run_folder(folder):
    """Returns the folder of the best of several runs, or None where the folder is not of such.

    Raises:
      UserError: a damaged file that tells of the runs.
    """
    path = os.path.join(folder, SWEEP_FILE)
    found = files.read_object(path)
    if found is None:
        return None
    try:
        return run_folder(folder, found["best"]["learning_rate"], found["best"]["seed"])
    except (LookupError, TypeError) as error:
        raise UserError(f"{path} does not say which run is the best; it is damaged") from error


def _copy_vocabulary(source, folder):
    """Copies a vocabulary, byte by byte, where there is one and it is not there yet."""
    if source and not vocabulary_in(folder):
        with files.whole_file(os.path.join(folder, VOCAB_FILE)) as temporary:
            shutil.copyfile(source, temporary)
