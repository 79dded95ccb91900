"""A model that somebody has: weights of any layout, and what lies beside them."""

import os
from typing import NamedTuple

from nezha_tf.checkpoints import hugging_face, loading, tf1
from nezha_tf.config import (
    POSITION_ENCODINGS,
    UNILM_SEGMENTS,
    NezhaConfig,
    encoding_of_tf1,
    read_values,
)
from nezha_tf.errors import UserError
from nezha_tf.model_folder import folder as model_folder
from nezha_tf.model_folder import published, task_file
from nezha_tf.model_folder.kinds import kind_of_architecture
from nezha_tf.model_folder.run_folder import VOCAB_FILE
from nezha_tf.model_folder.task_row import Kind
from nezha_tf.model_folder.task_table import TASKS
from nezha_tf.text.vocabulary import Vocabulary, check_vocabulary

# Of UniLM's LayerNorm, which its configuration does not name (modeling.py of UniLM v1).
UNILM_LAYER_NORM_EPS = 1e-5


class Source(NamedTuple):
    """What is converted.

    Attributes:
      path: of the weights, for messages.
      reader: as of `loading.open_checkpoint`.
      config: `NezhaConfig`.
      config_values: dict, the file that it was made of.
      vocab_file: path, or None where there is none.
      vocabulary: `Vocabulary`, or None.
      task: what `task.json` says, or Hugging Face's config.json of a model with a task's head; or
        None.
      do_lower_case: bool, or None where nothing says it.
      kind: the `Kind` that a file beside the weights says, or None.
      notes: lines on what was taken to be so.
    """

    path: str
    reader: object
    config: NezhaConfig
    config_values: dict
    vocab_file: str | None
    vocabulary: Vocabulary | None
    task: dict | None
    do_lower_case: bool | None
    kind: Kind | None
    notes: list[str]

    @property
    def is_hugging_face(self):
        """Whether the weights are in Hugging Face's layout."""
        return isinstance(self.reader, hugging_face.HuggingFaceReader)


def open_source(path, config_file=None, vocab_file=None, do_lower_case=None):
    """Opens a model.

    Args:
      path: a folder of a run or of a published model, a TF1 prefix, or a file of Hugging Face's.
      config_file: in place of the one beside the weights.
      vocab_file: in place of the `vocab.txt` beside the weights.
      do_lower_case: in place of what the files beside the weights say.

    Returns:
      `Source`; the weights are not read yet.

    Raises:
      UserError: no model there, a damaged file, or a vocabulary of another model.
    """
    if os.path.isdir(path):
        folder = model_folder.folder_of_model(path)
        path = model_folder.checkpoint_in(folder)
    else:
        folder = os.path.dirname(path) or "."
    weights_path, reader = loading.open_checkpoint(path)
    config_file = config_file or _config_file(folder, weights_path)
    config, values, notes = _read_config(config_file, reader)
    if not vocab_file:
        vocab_file = os.path.join(folder, VOCAB_FILE)
        if not os.path.exists(vocab_file):
            notes.append(f"no {vocab_file}: the new folder has no vocabulary (see --vocab_file)")
            vocab_file = None
    task = task_file.read(folder)
    if do_lower_case is None:
        case = published.do_lower_case(folder, default=None)
        do_lower_case = task["do_lower_case"] if task else case
    if task is None and "architectures" in values:
        # Hugging Face's config.json names the classes of a head.
        task = published.settings_of(folder, config, weights_path)
        if published.architecture_of(values).endswith(published.MULTIPLE_CHOICE):
            notes.append(
                f"{config_file} names a model {published.MULTIPLE_CHOICE}, which is no task of "
                "ours: its head, of one output, is converted as that of a classifier"
            )
    if task:
        is_known = task["task"] is not None
        task = {**task, "do_lower_case": do_lower_case is not False} if is_known else None
    return Source(
        path=weights_path,
        reader=reader,
        config=config,
        config_values=values,
        vocab_file=vocab_file,
        vocabulary=_read_vocabulary(vocab_file, config) if vocab_file else None,
        task=task,
        do_lower_case=do_lower_case,
        kind=_kind_said(task, values),
        notes=notes,
    )


def _config_file(folder, weights_path):
    try:
        return model_folder.config_file_in(folder, weights_path)
    except UserError as error:
        raise UserError(f"{error}, or pass --config_file") from error


def _read_vocabulary(path, config):
    vocabulary = Vocabulary.from_file(path)
    try:
        check_vocabulary(config, vocabulary)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return vocabulary


def _read_config(path, reader):
    """Returns (`NezhaConfig`, the file's values, notes).

    What lies beside PyTorch's weights is read as PyTorch's code reads it, though it does not say
    so: its "gelu" is the exact function.
    """
    values, notes = read_values(path), []
    assumed = {}
    is_silent = "model_type" not in values and "position_encoding" not in values
    if is_silent and isinstance(reader, hugging_face.HuggingFaceReader):
        encoding = encoding_of_tf1(values.get("use_relative_position"))
        assumed["model_type"] = POSITION_ENCODINGS[encoding].hugging_face.model_type
        notes.append(
            f"{path} has no model_type: read as that of {assumed['model_type']} in PyTorch, whose "
            '"gelu" is the exact function (gelu_erf)'
        )
        rows = reader.get_variable_to_shape_map().get(tf1.SEGMENT_TABLE, [0])[0]
        if rows == UNILM_SEGMENTS and "layer_norm_eps" not in values:
            assumed["layer_norm_eps"] = UNILM_LAYER_NORM_EPS
            notes.append(
                f"six segment rows: a UniLM, whose LayerNorm has an epsilon of "
                f"{UNILM_LAYER_NORM_EPS} (layer_norm_eps)"
            )
    values = {**values, **assumed}
    try:
        return NezhaConfig.from_dict(values), values, notes
    except UserError as error:
        raise UserError(f"config {path}: {error}") from error


def _kind_said(task, values):
    """Returns the kind that task.json, or else Hugging Face's config.json, says; or None."""
    if task:
        return TASKS[task["task"]].kind(task)
    return kind_of_architecture(published.architecture_of(values))
