"""The labels that the model of a run tells apart."""

import os

from nezha_tf.errors import UserError
from nezha_tf.model_folder import run_folder, task_file

# A label a line, in folders of before `task.json`.
OLD_FILE = "labels.txt"


def labels_of_run(folder, task):
    """Returns the labels that the folder of a run tells of.

    Args:
      folder: the --output_dir.
      task: the name of the task, "classification" or "tagging".

    Returns:
      (the path of the file that has them, or that lacks; list of str, or [] where it lacks).

    Raises:
      UserError: an unreadable file, or one of another task.
    """
    path = os.path.join(folder or "", task_file.FILE_NAME)
    settings = run_folder.read_settings(folder or "", task)
    if settings:
        return path, settings["labels"]
    old_path = os.path.join(folder or "", OLD_FILE)
    try:
        with open(old_path, encoding="utf-8") as file:
            return old_path, file.read().splitlines()
    except FileNotFoundError:
        return path, []
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {old_path}: {error}") from error
