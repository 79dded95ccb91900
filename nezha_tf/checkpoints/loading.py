"""Opens checkpoints of any layout, and loads their weights into a model."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from nezha_tf.checkpoints import electra, hugging_face, tf1, views
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_names
from nezha_tf.checkpoints.refusals import FLOATS, check_structure, no_finite, no_float
from nezha_tf.checkpoints.tf1 import ROW_KEYS, SEGMENT_TABLE, UNILM_ROWS, is_weight
from nezha_tf.util.errors import UserError

# What decides whether a run has a state, by a part of the state's name in a checkpoint.
_FLAGS_OF_STATE = {
    f"/{AVERAGE_SUFFIX}": "--ema_decay",
    "nezha_tf/loss_scale": "--precision",
    "nezha_tf/memory": "--memory_length",
    "nezha_tf/optimizer": "--optimizer and --freeze_layers",
    "nezha_tf/random_state": "the dropout of --bert_config_file",
}
_FLAGS_OF_SLOTS = "--optimizer and --freeze_layers"


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


def load(
    model: keras.Model,
    path: str | os.PathLike[str],
    may_be_missing: Sequence[str] = (),
    extend_segments: bool = False,
    averages: bool = False,
) -> LoadReport:
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


def load_tf1_checkpoint(
    model: keras.Model,
    prefix: str | os.PathLike[str],
    may_be_missing: Sequence[str] = (),
    extend_segments: bool = False,
) -> LoadReport:
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


def assign(path, reader, variables, may_be_missing=(), rows=None, needs_finite=False):
    """Sets variables from an open checkpoint: all of them or, after an error, none.

    Args:
      path, reader, may_be_missing: as for `load_weights`.
      variables: dict of name to `tf.Variable`.
      rows: dict of name to the rows of the checkpoint's table that make up a variable.
      needs_finite: whether NaN and infinity are errors.

    Returns:
      List of the names that the checkpoint lacks.
    """
    shapes, rows = reader.get_variable_to_shape_map(), rows or {}
    missing = [name for name in variables if name not in shapes]
    lacking = [name for name in missing if not name.startswith(tuple(may_be_missing))]
    if lacking:
        raise UserError(f"checkpoint {path} {_lacking_clause(path, lacking, variables, shapes)}")
    values = {}
    for name, variable in variables.items():
        if name in missing:
            continue
        if name not in rows and tuple(shapes[name]) != tuple(variable.shape):
            raise _other_shape(path, name, shapes[name], variable.shape.as_list())
        value = reader.get_tensor(name)
        if (value.dtype.name in FLOATS) != variable.dtype.is_floating:
            raise no_float(path, name, value.dtype.name)
        if needs_finite and not np.isfinite(value).all():
            raise no_finite(path, name)
        values[name] = value[list(rows[name])] if name in rows else value
    for name, value in values.items():
        variables[name].assign(tf.cast(value, variables[name].dtype))
    return missing


def _other_shape(path, name, shape, expected):
    # Names that TF1 does not have are states of the run, such as a memory.
    is_state = name.startswith("nezha_tf/")
    needed = "flags that it was begun with" if is_state else "config that belongs to it"
    if name in ROW_KEYS:
        needed += f" ({ROW_KEYS[name]} says the number of rows)"
    return UserError(
        f"checkpoint {path}: {name} has shape {shape}, and the model's is {expected}; "
        f"pass the {needed}"
    )


def _lacking_clause(path, lacking, variables, there):
    """Returns a clause on missing weights or states of training, and what to do."""
    weights = [name for name in lacking if is_weight(name, variables)]
    text = (
        f"lacks {(weights or lacking)[0]} ({len(lacking)} of {len(variables)} variables are "
        "missing)"
    )
    is_discriminator = any(name.startswith("discriminator_predictions/") for name in there)
    if is_discriminator and all(name.startswith("cls/predictions/") for name in weights):
        return (
            f"{text}: it is ELECTRA's discriminator, which predicts no tokens; take the generator, "
            "with its own configuration"
        )
    if weights:
        return f"{text}; is it of a model or a run of this kind?"
    flags = sorted(set(filter(None, (_flags_of(name, variables) for name in lacking))))
    if flags:
        text += f", a state of training that depends on {', '.join(flags)}"
    return (
        f"{text}; pass the flags with which the run was begun, or begin a new run in another "
        f"--output_dir with --init_checkpoint={path}"
    )


def _flags_of(name, variables):
    """Returns the flags that decide whether a run has a state; None: every run has it."""
    for part, flags in _FLAGS_OF_STATE.items():
        if part in name:
            return flags
    return _FLAGS_OF_SLOTS if name.rpartition("/")[0] in variables else None
