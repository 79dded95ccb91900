"""From a model folder to a SavedModel."""

import importlib
import os

from nezha_tf.errors import UserError, require_flag
from nezha_tf.export.saved_model import write
from nezha_tf.model_folder import folder as model_folder
from nezha_tf.model_folder.run_folder import VOCAB_FILE
from nezha_tf.pretraining_objectives.uses import uses_of
from nezha_tf.tasks.pretraining import serving as pretrained

# What serves a folder's task: module and class, imported when it is wanted.
OF_TASK = {
    "classification": ("classification", "ClassificationServing"),
    "tagging": ("tagging", "TaggingServing"),
    "reading_comprehension": ("reading_comprehension", "ReadingComprehensionServing"),
    "seq2seq": ("seq2seq", "Seq2SeqServing"),
}
# What any model serves, or any with the head of masked LM.
OF_ANY = {
    "features": ("features", "FeaturesServing"),
    "fill_mask": ("fill_mask", "FillMaskServing"),
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


def run_and_export(run, flags, make_task):
    """Runs a program, and with --do_export writes the SavedModel of what it has left.

    Args:
      run: `training.run.run` or `tasks.finetuning.sweep.run`.
      flags: the program's; with --do_export and none of its other modes it is not run.
      make_task: as for `run`.

    Raises:
      UserError: as for `run` and `export_folder`; what can be seen before the run is told then.
    """
    folder = flags["output_dir"]
    if not flags["do_export"] or not folder:
        run(flags, make_task)
        return
    export_dir = flags["export_dir"] or os.path.join(folder, "export")
    check_output_dir(export_dir)
    if not flags["vocab_file"] and not os.path.exists(os.path.join(folder, VOCAB_FILE)):
        raise UserError("--do_export puts the vocabulary into the SavedModel; pass --vocab_file")
    is_chief = True
    if any(flags.get(mode) for mode in ("do_train", "do_eval", "do_predict")):
        is_chief = run({**flags, "do_export": False, "export_dir": None}, make_task)
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
    own = folder.task["task"]
    task = task or (own if own in OF_TASK else next(iter(uses_of(folder.task)), "features"))
    if task in OF_PRETRAINED and own not in OF_TASK:
        serving = OF_PRETRAINED[task](folder)
    else:
        module, name = _module_of(task, folder)
        options = {"max_seq_length": _length_of(folder)} if task in OF_ANY else {}
        module = importlib.import_module(f"nezha_tf.export.{module}")
        serving = getattr(module, name)(folder, **options)
    write(serving, output_dir)
    return f"{task} in {output_dir}; how to use it: {os.path.join(output_dir, 'README.md')}"


def _module_of(task, folder):
    """Returns (module, class) of what serves; `UserError` where it is another task's."""
    own = folder.task["task"]
    if task not in OF_ANY and task != own:
        raise UserError(f"the model in {folder.path} is of {own}; --task={task} is of others")
    return {**OF_TASK, **OF_ANY}[task]


def check_output_dir(path):
    """Raises a `UserError` where the folder to write is there already."""
    if os.path.lexists(path):
        raise UserError(f"{path} is there already; name a new folder for the SavedModel")


def _length_of(folder):
    """Returns the most pieces that a text may have, special ones counted."""
    length = folder.task.get("max_seq_length") or MAX_SEQ_LENGTH
    if folder.config.position_encoding == "absolute":
        length = min(length, folder.config.max_position_embeddings)
    return length
