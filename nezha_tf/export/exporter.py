"""From a model folder to a SavedModel."""

import dataclasses
import os

from nezha_tf.errors import UserError, require_flag
from nezha_tf.model_folder import folder as model_folder
from nezha_tf.model_folder.run_folder import VOCAB_FILE
from nezha_tf.model_folder.task_table import TASKS, part
from nezha_tf.modeling import positions
from nezha_tf.pretraining_objectives.uses import uses_of
from nezha_tf.serving.saved_model import write
from nezha_tf.tasks.pretraining import serving as pretrained

# What any model serves, or any with the head of masked LM.
OF_ANY = {
    "features": "nezha_tf.export.features:FeaturesServing",
    "fill_mask": "nezha_tf.export.fill_mask:FillMaskServing",
}
# What a pretrained model serves beside these, where an objective has trained it to.
OF_PRETRAINED = {
    "left_to_right": pretrained.ContinuationServing,
    "seq2seq": pretrained.TargetServing,
}
# Where the folder does not say how long texts may be.
MAX_SEQ_LENGTH = 512


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
    return export_folder(path, output_dir, flags["task"])


def run_and_export(run, settings, make_task):
    """Runs a program, and with --do_export writes the SavedModel of what it has left.

    Args:
      run: `training.run.run` or `tasks.finetuning.sweep.run`.
      settings: the program's; with --do_export and none of its other modes it is not run.
      make_task: as for `run`.

    Raises:
      UserError: as for `run` and `export_folder`; what can be seen before the run is told then.
    """
    folder = settings.output_dir
    if not settings.do_export or not folder:
        run(settings, make_task)
        return
    export_dir = settings.export_dir or os.path.join(folder, "export")
    check_output_dir(export_dir)
    if not settings.vocab_file and not os.path.exists(os.path.join(folder, VOCAB_FILE)):
        raise UserError("--do_export puts the vocabulary into the SavedModel; pass --vocab_file")
    is_chief = True
    if settings.do_train or settings.do_eval or settings.do_predict:
        without = dataclasses.replace(settings, do_export=False, export_dir=None)
        is_chief = run(without, make_task)
    if is_chief:
        print(export_folder(folder, export_dir), flush=True)


def export_folder(path, output_dir, task=None):
    """Writes the SavedModel of a model folder.

    Args:
      path: of the folder.
      output_dir: a folder that is not there yet.
      task: a key of `OF_ANY` or `OF_PRETRAINED`; None: what the model was trained for. Of
        objectives of pretraining that is the first of `uses_of`; where they have no use, features.

    Returns:
      What to print.

    Raises:
      UserError: bad folders, or a model that does not do this.
    """
    check_output_dir(output_dir)
    folder = model_folder.open_folder(path)
    name, serving = _serving_of(folder, task)
    write(serving, output_dir)
    return f"{name} in {output_dir}; how to use it: {os.path.join(output_dir, 'README.md')}"


def _serving_of(folder, task):
    """Returns (what is served, its `Serving`).

    Args:
      folder: `ModelFolder`.
      task: as for `export_folder`.

    Raises:
      UserError: the model does not do this.
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
        raise UserError(f"the model in {folder.path} is of {own}; leave out --task={task}")
    return task, OF_PRETRAINED[task](folder)


def check_output_dir(path):
    """Raises a `UserError` where the folder to write is there already."""
    if os.path.lexists(path):
        raise UserError(f"{path} is there already; name a new folder for the SavedModel")


def _length_of(folder):
    """Returns the most pieces that a text may have, special ones counted."""
    length = folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    longest = positions.of(folder.config).longest(folder.config)
    return length if longest is None else min(length, longest)
