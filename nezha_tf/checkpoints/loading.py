"""Opens checkpoints of any layout, and loads their weights into a model."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import keras

from nezha_tf.checkpoints import adapters, electra, hugging_face, run_folder, tf1, views
from nezha_tf.checkpoints.assigning import assign
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.checkpoints.refusals import check_structure
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE, UNILM_ROWS, is_weight
from nezha_tf.config import NezhaConfig
from nezha_tf.modeling import lora
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


class LoadReport(NamedTuple):
    """The differences between a loaded checkpoint and the model."""

    missing: list[str]  # variables that the checkpoint lacks; they kept their values
    unused: list[str]  # weights of the checkpoint that the model does not have
    extended: str = ""  # a clause on a table that was made larger


def open_checkpoint(path, config=None, heads=()):
    """Opens a checkpoint of TF1, of ours, or of Hugging Face.

    Args:
      path: see `tf1.open_checkpoint` and `hugging_face.find_weights`; in a folder with both
        layouts, TF1's is opened if the file `checkpoint` is there, else Hugging Face's.
      config, heads: what decides which model of ELECTRA's checkpoint is read; see `electra.view`.

    Returns:
      (path for messages, reader of tensors by TF1 name with the interface of
      `tf.train.CheckpointReader`). That there is no checkpoint, or a damaged one, is a `UserError`.
    """
    path, reader = _open(path)
    return path, electra.view(reader, config, heads)


def _open(path):
    weights_file = hugging_face.find_weights(os.fspath(path))
    if weights_file is not None:
        return weights_file, hugging_face.HuggingFaceReader(weights_file)
    return _with_base(*tf1.open_checkpoint(path))


def _with_base(path, reader):
    """Returns (path, the reader or, of adapters, one of their base with them)."""
    names = reader.get_variable_to_shape_map()
    if not adapters.are_in(names):
        return path, reader
    folder = os.path.dirname(path)
    about, file = adapters.read(folder), os.path.join(folder, adapters.FILE_NAME)
    if about is None:
        raise UserError(
            f"checkpoint {path} holds adapters alone, and {file} is missing, which names the model "
            "that they belong to; restore it"
        )
    config_file = os.path.join(folder, run_folder.CONFIG_FILE)
    config = NezhaConfig.from_json_file(config_file) if storage.exists(config_file) else None
    try:
        base = open_base(about.base, config, names)
    except UserError as error:
        raise UserError(
            f"checkpoint {path} holds adapters of the model {about.base}, which cannot be opened: "
            f'{error}; put it back, or write its new place as "base" in {file}'
        ) from error
    return path, adapters.MergedReader(path, reader, base, about)


def open_base(path, config, own):
    """Returns the reader of a model that adapters change: of its weights, or of their averages.

    Args:
      path: see `places.weights_of`.
      config: the model's `NezhaConfig`.
      own: the names in a checkpoint of adapters.

    Raises:
      UserError: it is not there, or damaged.
    """
    checkpoint, averages = weights_of(path)
    heads = [name for name in own if is_weight(name, own) and not name.startswith("bert/")]
    _, reader = open_checkpoint(checkpoint, config, heads)
    return views.averages(checkpoint, reader) if averages else reader


def load(
    model: keras.Model,
    path: str | os.PathLike[str],
    may_be_missing: Sequence[str] = (),
    extend_segments: bool = False,
    averages: bool = False,
) -> LoadReport:
    """Loads the weights of a checkpoint of any layout into a model.

    Optimizer slots and the step are ignored. Either all weights are changed or, after an error,
    none. If the model has adapters (`lora.enable_lora`), these begin anew: their B becomes 0, so
    that the model is the one of the checkpoint.

    Args:
      model: a Keras model whose variables are in the name table, such as `NezhaForPreTraining`.
      path: see `open_checkpoint`.
      may_be_missing: prefixes of TF1 names that keep their current values if the checkpoint lacks
        them ("cls/" for the pretraining heads).
      extend_segments: whether BERT's table of two segments is extended to UniLM's six if the
        model has six: 2, 3 and 4 start with the values of 0, and 5 with those of 1 (UniLM v1).
      averages: whether to load the moving averages instead of the weights.

    Returns:
      A `LoadReport`.

    Raises:
      UserError: there is no checkpoint, or there are no averages; a variable is missing, has
        another shape (the message names it and both shapes) or is not finite.
    """
    path, reader = _open(path)
    reader = views.averages(path, reader) if averages else reader
    return load_weights(model, path, reader, may_be_missing, extend_segments, needs_finite=True)


def load_tf1_checkpoint(
    model: keras.Model,
    prefix: str | os.PathLike[str],
    may_be_missing: Sequence[str] = (),
    extend_segments: bool = False,
) -> LoadReport:
    """Does what `load` does, for TF1's checkpoints and ours alone; weights may be NaN."""
    path, reader = _with_base(*tf1.open_checkpoint(prefix))
    return load_weights(model, path, reader, may_be_missing, extend_segments)


def load_weights(model, path, reader, may_be_missing=(), extend_segments=False, needs_finite=False):
    """Does what `load` does, from an open reader; `path` is only for messages."""
    variables = tf1_names(model)
    heads = [name for name in variables if not name.startswith("bert/")]
    config = getattr(model, "config", None)
    reader = electra.view(reader, config, heads)
    shapes = reader.get_variable_to_shape_map()
    expected = {name: variable.shape for name, variable in variables.items()}
    check_structure(path, shapes, expected, getattr(config, "num_hidden_groups", None))
    rows = {}
    if extend_segments and _has_rows(variables, shapes, SEGMENT_TABLE, UNILM_ROWS):
        rows[SEGMENT_TABLE] = UNILM_ROWS
    missing = assign(path, reader, variables, may_be_missing, rows, needs_finite)
    lora.begin_anew(model)
    extended = "its two segment rows extended to six: 2, 3, 4 as 0, and 5 as 1" if rows else ""
    unused = _unused(set(shapes), variables) + _unused(set(getattr(reader, "others", ())), ())
    return LoadReport(missing, unused, extended)


def _has_rows(variables, shapes, name, rows):
    if name not in shapes or name not in variables:
        return False
    theirs, ours = tuple(shapes[name]), tuple(variables[name].shape)
    return (max(rows) + 1, len(rows)) == (theirs[0], ours[0]) and theirs[1:] == ours[1:]


def _unused(names, variables):
    return sorted(name for name in names - set(variables) if is_weight(name, names))
