"""The labels of a run's model."""

import os

from nezha_tf.checkpoints import run_folder
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# One label per line, in folders that are older than `task.json`.
OLD_FILE = "labels.txt"


def labels_of_run(folder, task):
    """Returns the labels that are stored in the folder of a run.

    Args:
      folder: the --output_dir.
      task: the name of the task in `task.json`.

    Returns:
      (path of the file with the labels, list of str); [] if there is no such file.

    Raises:
      UserError: the file cannot be read or belongs to another task.
    """
    path = os.path.join(folder or "", run_folder.TASK_FILE)
    settings = run_folder.read_settings(folder or "", task)
    if settings:
        return path, settings["labels"]
    old_path = os.path.join(folder or "", OLD_FILE)
    try:
        with storage.open_text(old_path) as file:
            return old_path, file.read().splitlines()
    except FileNotFoundError:
        return path, []
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {old_path}: {error}") from error
