"""Exports a model folder as a SavedModel."""

import dataclasses
import os

from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints.run_folder import VOCAB_FILE
from nezha_tf.checkpoints.task_table import TASKS, part
from nezha_tf.modeling import positions
from nezha_tf.objectives.uses import uses_of
from nezha_tf.serving.saved_model import require_loadable, write
from nezha_tf.tasks.pretraining import serving as pretrained
from nezha_tf.training import start
from nezha_tf.util import files, storage
from nezha_tf.util.errors import UserError, require_flag

# What any model can serve; "fill_mask" needs the head of masked LM.
OF_ANY = {
    "features": "nezha_tf.export.features:FeaturesServing",
    "fill_mask": "nezha_tf.export.fill_mask:FillMaskServing",
}
# What a pretrained model can also serve, if one of its objectives trained it to do so.
OF_PRETRAINED = {
    "left_to_right": pretrained.ContinuationServing,
    "seq2seq": pretrained.TargetServing,
}
# The longest text in tokens if the model folder does not say it.
MAX_SEQ_LENGTH = 512


def export(settings):
    """Writes the SavedModel of a model folder.

    Args:
      settings: `ExportSettings`.

    Returns:
      Text to print: what the SavedModel does, and where it is.

    Raises:
      UserError: a mistake in the flags or in the folder.
    """
    path = require_flag(settings.model_folder, "model_folder")
    output_dir = require_flag(settings.output_dir, "output_dir")
    return export_folder(path, output_dir, settings.task)


def run_and_export(run, settings, make_task):
    """Runs a training program, and with --do_export writes the SavedModel of its best checkpoint.

    Args:
      run: `training.run.run` or `tasks.finetuning.sweep.run`.
      settings: settings of the program. With --do_export and without --do_train, --do_eval and
        --do_predict the program does not run; what is in its folder is exported.
      make_task: as for `run`.

    Raises:
      UserError: as for `run` and `export_folder`, or --export_dir without --do_export. The folders
        are checked before the run begins.
    """
    folder = settings.output_dir
    if settings.export_dir and not settings.do_export:
        raise UserError(
            f"--export_dir={settings.export_dir} does nothing without --do_export; leave it out"
        )
    if not settings.do_export or not folder:
        run(settings, make_task)
        return
    export_dir = settings.export_dir or os.path.join(folder, "export")
    check_output_dir(export_dir, "export_dir")
    has_vocabulary = start.with_files_beside(settings).vocab_file
    if not has_vocabulary and not storage.exists(os.path.join(folder, VOCAB_FILE)):
        raise UserError(
            "--do_export needs the vocabulary, which becomes part of the SavedModel; pass "
            "--vocab_file"
        )
    is_chief = True
    if settings.do_train or settings.do_eval or settings.do_predict:
        without = dataclasses.replace(settings, do_export=False, export_dir=None)
        is_chief = run(without, make_task)
    if is_chief:
        print(export_folder(folder, export_dir), flush=True)


def export_folder(path, output_dir, task=None):
    """Writes the SavedModel of a model folder.

    Args:
      path: path of the model folder.
      output_dir: path of the folder to make; it must not exist.
      task: a key of `OF_ANY` or `OF_PRETRAINED`; None: what the model was trained for. For a
        pretrained model that is the first of `uses_of`, or "features" if it has no use.

    Returns:
      Text to print: what the SavedModel does, and where it is.

    Raises:
      UserError: one of the folders is unsuitable, or the model cannot do the task.
    """
    check_output_dir(output_dir)
    folder = model_folder.open_folder(path)
    name, serving = _serving_of(folder, task)
    write(serving, output_dir)
    return f"{name} in {output_dir}; how to use it: {os.path.join(output_dir, 'README.md')}"


def _serving_of(folder, task):
    """Returns (name of the task, its `Serving`).

    Args:
      folder: `ModelFolder`.
      task: as for `export_folder`.

    Raises:
      UserError: the model cannot do the task.
    """
    own = folder.task["task"]
    row = TASKS.get(own)
    if task is None:
        serving = part(row.serving)(folder) if row and row.serving else None
        if serving is not None:
            return own, serving
        task = next(iter(uses_of(folder.task)), "features")
    if task in OF_ANY:
        return task, part(OF_ANY[task])(folder, max_seq_length=_length_of(folder))
    if row and row.serving:
        raise UserError(
            f"the model in {folder.path} was trained for {own}; leave out --task={task}"
        )
    return task, OF_PRETRAINED[task](folder)


def check_output_dir(path, flag="output_dir"):
    """Raises `UserError` if the folder to write exists, or cannot be made.

    Args:
      path: the folder.
      flag: the flag that names it.
    """
    if storage.is_remote(path):
        raise UserError(
            f"--{flag}={path} is not on this machine; name a folder here, and copy the SavedModel "
            "there"
        )
    if os.path.lexists(path):
        raise UserError(f"{path} exists already; name a new folder for the SavedModel")
    require_loadable(os.path.abspath(path), flag)
    files.require_folder(path, flag)


def _length_of(folder):
    """Returns the length of the longest text in tokens, [CLS] and [SEP] included."""
    length = folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    longest = positions.of(folder.config).longest(folder.config)
    return length if longest is None else min(length, longest)
