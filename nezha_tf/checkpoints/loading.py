"""Opens checkpoints of any layout, and loads their weights into a model."""

import os
from typing import NamedTuple

from nezha_tf.checkpoints import electra, hugging_face, tf1, views
from nezha_tf.checkpoints.assigning import assign
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.refusals import check_structure
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE, UNILM_ROWS, is_weight


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
    if weights_file is None:
        return tf1.open_checkpoint(path)
    return weights_file, hugging_face.HuggingFaceReader(weights_file)


def load(model, path, may_be_missing=(), extend_segments=False, averages=False):
    """Loads the weights of a checkpoint of any layout into a model.

    Optimizer slots and the step are ignored. Either all weights are changed or, after an error,
    none.

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


def load_tf1_checkpoint(model, prefix, may_be_missing=(), extend_segments=False):
    """Does what `load` does, for TF1's checkpoints and ours alone; weights may be NaN."""
    return load_weights(model, *tf1.open_checkpoint(prefix), may_be_missing, extend_segments)


def load_weights(model, path, reader, may_be_missing=(), extend_segments=False, needs_finite=False):
    """Does what `load` does, from an open reader; `path` is only for messages."""
    variables = {name: variable.value for name, variable in tf1_names(model).items()}
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
