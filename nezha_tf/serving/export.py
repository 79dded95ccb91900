"""Exports a model folder as a SavedModel with a README, and opens what was exported."""

import dataclasses
import json
import os
import re
import tempfile

import tensorflow as tf
import tensorflow_text  # noqa: F401 - the operations of the exports

from nezha_tf.checkpoints import card_head, task_parts
from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints.card_head import FILE_NAME
from nezha_tf.checkpoints.run_folder import VOCAB_FILE
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.objectives.uses import PIPELINE_TAGS, uses_of
from nezha_tf.serving.any_model import FeaturesServing, fill_mask
from nezha_tf.training import start
from nezha_tf.util import console, files, storage
from nezha_tf.util.errors import UserError, first_line, require_flag
from nezha_tf.util.language import translated

_OF_PATTERNS = re.compile(r"[*?\[\\]")
# What a pretrained model serves, if one of its objectives trained it to do so. The first only needs
# the head of masked LM.
OF_PRETRAINED = {
    "fill_mask": fill_mask,
    "left_to_right": task_parts.continuations,
    "seq2seq": task_parts.targets,
}


def export(settings):
    """Writes the SavedModel of `ExportSettings`; see `export_folder`."""
    path = require_flag(settings.model_folder, "model_folder")
    output_dir = require_flag(settings.output_dir, "output_dir")
    return export_folder(path, output_dir, settings.task)


def run_and_export(run, settings, make_task):
    """Runs a training program, and with --do_export writes the SavedModel of its best checkpoint.

    With --do_export and without --do_train, --do_eval and --do_predict the program does not run;
    what is in its folder is exported. The folders are checked before the run begins.

    Args:
      run: `training.run.run` or `tasks.finetuning.sweep.run`.
      settings: settings of the program.
      make_task: as for `run`.
    """
    folder = settings.output_dir
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
        console.tell(export_folder(folder, export_dir), flush=True)


def export_folder(path, output_dir, task=None):
    """Writes the SavedModel of a model folder for a task (`serving_of`) into a new folder.

    Returns:
      Text to print: what the SavedModel does, and where it is.

    Raises:
      UserError: one of the folders is unsuitable, or the model cannot do the task.
    """
    check_output_dir(output_dir)
    folder = model_folder.open_folder(path)
    name, serving = serving_of(folder, task)
    # --do_export writes the folder "export" into that of the run.
    is_inside = os.path.dirname(os.path.abspath(output_dir)) == os.path.abspath(path)
    console.tell("tracing and writing the SavedModel", flush=True)
    title = files.folder_name(path) if is_inside else files.export_name(output_dir)
    write(serving, output_dir, head_of(folder, name, path), title)
    return f"{name} in {output_dir}; how to use it: {os.path.join(output_dir, FILE_NAME)}"


def serving_of(folder, task=None):
    """Returns (name of the task, the `Serving` of a `ModelFolder` that does it).

    The task is "features" or a key of `OF_PRETRAINED`; None: what the model was trained for. For a
    pretrained model that is the first of `uses_of`, or "features" if it has no use.

    Raises:
      UserError: the model cannot do the task.
    """
    own = folder.task["task"]
    row = TASKS.get(own)
    has_own = row is not None and row.serving is not None
    if task is None and has_own:
        return own, row.serving(folder, folder.make_model())
    task = task or next(iter(uses_of(folder.task)), "features")
    if task == "features":
        return task, FeaturesServing(folder)
    if task != "fill_mask" and has_own:
        raise UserError(
            f"the model in {folder.path} was trained for {own}; leave out --task={task}"
        )
    return task, OF_PRETRAINED[task](folder, folder.make_model())


def head_of(folder, name, path):
    """Returns the head of the card of a `ModelFolder`'s export, by the name from `serving_of`."""
    is_of_task = name == folder.task["task"]
    tag = PIPELINE_TAGS.get(name, card_head.VECTORS)
    head = card_head.text_of(
        library=None,
        framework="tensorflow",
        tag=card_head.pipeline_tag(folder.task) if is_of_task else tag,
        tags=card_head.tags_of(folder.config, "saved_model"),
        base=card_head.base_of(path),
    )
    keys = (*card_head.OF_MODEL, *card_head.OF_RESULTS) if is_of_task else card_head.OF_MODEL
    return card_head.completed(head, folder.path, keys)


def check_output_dir(path, flag="output_dir"):
    """Raises `UserError` if the folder to write (of `flag`) exists, or cannot be made."""
    if storage.is_remote(path):
        raise UserError(
            f"--{flag}={path} is not on this machine; name a folder here, and copy the SavedModel "
            "there"
        )
    if os.path.lexists(path):
        raise UserError(f"{path} exists already; name a new folder for the SavedModel")
    require_loadable(os.path.abspath(path), flag)
    files.require_folder(path, flag)


def open_export(path, flag):
    """Returns the export that a flag names, as `tf.saved_model.load` does, or a `UserError`."""
    require_loadable(path, flag)
    try:
        return tf.saved_model.load(path)
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise UserError(f"--{flag}={path} is no export: {first_line(error)}") from error


def require_loadable(path, flag):
    """Raises a `UserError` if TensorFlow would take the path of a SavedModel for a pattern.

    It finds no weights then, or those of another folder.
    """
    sign = _OF_PATTERNS.search(path)
    if sign:
        raise UserError(
            f"--{flag}={path}: TensorFlow takes a path with {sign[0]} for a pattern and does not "
            "find the weights of a SavedModel there; name a folder without this character"
        )


def write(serving, folder, head="", title=None):
    """Writes a `Serving` as a SavedModel with a README.md into a new folder.

    Args:
      serving: the `Serving`.
      folder: the folder.
      head: the start of the README.md, see `head_of`.
      title: its title; default: the name of the folder.

    Raises:
      UserError: the folder exists, or cannot be written; then there is nothing in it.
    """
    signatures = {n: f.get_concrete_function() for n, f in serving.signatures().items()}
    with files.whole_folder(folder) as temporary, tempfile.TemporaryDirectory() as scratch:
        paths = []
        for name, text in serving.assets().items():
            paths.append(os.path.join(scratch, name))
            files.write_text(paths[-1], text)
        serving.asset_files = [tf.saved_model.Asset(path) for path in paths]
        try:
            tf.saved_model.save(serving, temporary, signatures)
        except tf.errors.OpError as error:
            raise UserError(f"cannot write {folder}: {first_line(error)}") from error
        text = readme_text(serving, title or files.folder_name(folder), folder, signatures)
        files.write_text(os.path.join(temporary, FILE_NAME), head + text)


def readme_text(serving, title, path, signatures):
    """Returns the README of an export: how to use it, its inputs and its outputs.

    Its program loads the path that the user gave, so it runs where the export was made.
    """
    lines = [
        f"# {title}",
        "",
        translated(serving.about),
        "",
        "```python",
        "import tensorflow as tf, tensorflow_text",
        "",
        f"model = tf.saved_model.load({json.dumps(path, ensure_ascii=False)})",
        f'outputs = model.signatures["serving_default"]({serving.example})',
        "```",
        "",
        translated(
            "It only needs `tensorflow` and `tensorflow-text`, both of the same version, "
            f"{tf.__version__} or later. Outputs are a dict of name to tensor. The number of texts "
            "may be any number, also 0. Texts are UTF-8; invalid bytes become U+FFFD, as in "
            "tensorflow's `unicode_transcode`. `assets/` holds the vocabulary and the names of the "
            "labels, if there are any."
        ),
    ]
    for signature, function in signatures.items():
        # None stands for an argument that this signature does not have.
        inputs = {s.name: s for s in function.structured_input_signature[0] if s is not None}
        lines += ["", f"## `{signature}`", "", "| | | |", "| --- | --- | --- |"]
        lines += _rows(serving, "in", inputs) + _rows(serving, "out", function.structured_outputs)
    return "\n".join(lines) + "\n"


def _rows(serving, direction, specs):
    lines = []
    for name, spec in specs.items():
        sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
        meaning = translated(serving.meanings.get(name, ""))
        lines.append(f"| {direction}: `{name}` | {spec.dtype.name} [{sizes}] | {meaning} |")
    return lines
