"""Sets variables from an open checkpoint, and says why one does not fit."""

import numpy as np
import tensorflow as tf

from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX
from nezha_tf.checkpoints.refusals import FLOATS, no_finite, no_float
from nezha_tf.checkpoints.tf1 import ROW_KEYS, is_weight
from nezha_tf.util.errors import UserError

# What decides whether a run has a state, by a part of the state's name in a checkpoint.
_FLAGS_OF_STATE = {
    f"/{AVERAGE_SUFFIX}": "--ema_decay",
    "nezha_tf/loss_scale": "--precision",
    "nezha_tf/memory": "--memory_length",
    "nezha_tf/optimizer": "--optimizer and --freeze_layers",
    "nezha_tf/random_state": "the dropout of --bert_config_file",
    "nezha_tf/train_minutes": "--train_minutes",
}
_FLAGS_OF_SLOTS = "--optimizer and --freeze_layers"


def assign(path, reader, variables, may_be_missing=(), rows=None, needs_finite=False):
    """Sets variables from an open checkpoint: all of them or, after an error, none.

    Args:
      path, reader, may_be_missing: as for `loading.load_weights`.
      variables: dict of name to variable, of TensorFlow or of Keras on any backend.
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
            raise _other_shape(path, name, shapes[name], list(variable.shape))
        value = reader.get_tensor(name)
        if (value.dtype.name in FLOATS) != tf.as_dtype(variable.dtype).is_floating:
            raise no_float(path, name, value.dtype.name)
        if needs_finite and not np.isfinite(value).all():
            raise no_finite(path, name)
        values[name] = value[list(rows[name])] if name in rows else value
    for name, value in values.items():
        dtype = tf.as_dtype(variables[name].dtype).as_numpy_dtype
        variables[name].assign(np.asarray(value).astype(dtype))
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
