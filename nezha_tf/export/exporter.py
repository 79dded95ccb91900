"""From a model folder to a SavedModel."""

import importlib
import os

from nezha_tf import model_folder
from nezha_tf.errors import UserError, require_flag
from nezha_tf.export.saved_model import write

# What serves a folder's task: module and class, imported when it is wanted.
OF_TASK = {
    "classification": ("classification", "ClassificationServing"),
    "tagging": ("tagging", "TaggingServing"),
    "seq2seq": ("seq2seq", "Seq2SeqServing"),
}


def export(flags):
    """Writes the SavedModel of a model folder.

    Args:
      flags: dict of the flags of tools/export_saved_model.py.

    Returns:
      What to print.

    Raises:
      UserError: a mistake in the flags or in the folder.
    """
    path, output_dir = (require_flag(flags[name], name) for name in ("model_folder", "output_dir"))
    if os.path.exists(output_dir):
        raise UserError(f"--output_dir={output_dir} is there already; name a new folder")
    folder = model_folder.open_folder(path)
    task = folder.task["task"]
    if task not in OF_TASK:
        raise UserError(f"--model_folder={path} is no run of one of {', '.join(OF_TASK)}")
    return write_task(folder, task, output_dir)


def write_task(folder, task, output_dir):
    """Writes the SavedModel of an opened folder for a task; returns what to print."""
    module, name = OF_TASK[task]
    serving = getattr(importlib.import_module(f"nezha_tf.export.{module}"), name)(folder)
    write(serving, output_dir)
    return f"{task} in {output_dir}; how to use it: {os.path.join(output_dir, 'README.md')}"
