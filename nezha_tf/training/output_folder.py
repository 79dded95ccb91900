"""The folder of a run as a model's: beside the weights what it takes to use them."""

import os
import shutil

from nezha_tf import files, task_file
from nezha_tf.errors import UserError

CONFIG_FILE, VOCAB_FILE = "bert_config.json", "vocab.txt"


def write_settings(folder, task):
    """Writes `bert_config.json`, `task.json` and `vocab.txt`.

    Args:
      folder: of the run.
      task: a `training.task.Task`.

    Raises:
      UserError: the folder has another vocabulary.
    """
    _copy_vocabulary(task.flags["vocab_file"], folder)
    task.config.to_json_file(os.path.join(folder, CONFIG_FILE))
    task_file.write(folder, settings_of(task))


def has_settings(folder):
    """Whether a run has left its `task.json` there."""
    return os.path.exists(os.path.join(folder, task_file.FILE_NAME))


def settings_of(task):
    """Returns what `task.json` says of a `Task`."""
    flags, own = task.flags, task.settings()
    common = {
        "do_lower_case": flags["do_lower_case"],
        "max_seq_length": flags.get("max_seq_length"),
        "uses_averages": flags["ema_decay"] > 0,
    }
    return {"task": own["task"], **common, **own}


def _copy_vocabulary(source, folder):
    """Copies a vocabulary, byte by byte, where there is one and it is not there yet."""
    if not source:
        return
    target = os.path.join(folder, VOCAB_FILE)
    if os.path.exists(target):
        if _bytes_of(source) != _bytes_of(target):
            raise UserError(
                f"--vocab_file={source} is another vocabulary than that of the run in {target}; "
                "pass that one, or another --output_dir"
            )
        return
    with files.whole_file(target) as temporary:
        shutil.copyfile(source, temporary)


def _bytes_of(path):
    with open(path, "rb") as file:
        return file.read()
