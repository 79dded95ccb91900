"""TF1 Saver checkpoints (V2), read into our models and written from them."""

import os
import re
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.errors import UserError, first_line

SEGMENT_TABLE = "bert/embeddings/token_type_embeddings"
# What TF1 keeps beside weights and their slots: of training, and of Adam.
STATE = ("global_step", "beta1_power", "beta2_power")
# Behind the name of a weight: the name of its moving average.
AVERAGE_SUFFIX = "ExponentialMovingAverage"
_ENDING = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")
# The row of BERT's table that each of UniLM's begins as (load_model of UniLM v1).
UNILM_ROWS = (0, 1, 0, 0, 0, 1)


class UnreadableCheckpoint(UserError):
    """The files of a checkpoint are damaged or incomplete."""


class LoadReport(NamedTuple):
    """What a load left over.

    Attributes:
      missing: variables that the checkpoint lacks; they kept their values.
      unused: weights of the checkpoint that the model has no place for.
      extended: a few words on a table that was made larger, or "".
    """

    missing: list[str]
    unused: list[str]
    extended: str = ""


def open_checkpoint(prefix):
    """Opens a checkpoint.

    Args:
      prefix: path without ending; that of one of its files, or a folder (its newest one), is
        taken too.

    Returns:
      (prefix, a `tf.train.CheckpointReader`).

    Raises:
      UserError: no checkpoint there; `UnreadableCheckpoint` for a damaged one.
    """
    prefix = os.fspath(prefix)
    if tf.io.gfile.isdir(prefix):
        newest = tf.train.latest_checkpoint(prefix)
        if newest is None:
            raise UserError(
                f"no checkpoint in the folder {prefix}: neither TF1's (model.ckpt-*) nor Hugging "
                "Face's (model.safetensors, pytorch_model.bin)"
            )
        prefix = newest
    prefix = _ENDING.sub("", prefix)
    if not tf.io.gfile.exists(f"{prefix}.index"):
        raise UserError(f"no checkpoint at {prefix}: {prefix}.index does not exist")
    try:
        return prefix, tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, RuntimeError, ValueError, LookupError) as error:
        raise UnreadableCheckpoint(
            f"checkpoint {prefix} is unreadable: {first_line(error)}"
        ) from error


def load_tf1_checkpoint(model, prefix, may_be_missing=(), extend_segments=False):
    """Loads the weights of a TF1 checkpoint, or of one of ours, into a model.

    Optimizer slots and the step are passed over. Nothing is changed unless all fits.

    Args:
      model: `NezhaEncoder` or `NezhaForPreTraining`.
      prefix: as for `open_checkpoint`.
      may_be_missing: prefixes of names that keep their present values where the checkpoint
        lacks them ("cls/" for the pretraining heads).
      extend_segments: whether a table of BERT's two segments is made UniLM's of six, where the
        model has six: 2, 3 and 4 begin as 0 does, and 5 as 1 does (UniLM v1).

    Returns:
      `LoadReport`.

    Raises:
      UserError: no such checkpoint, a variable is missing, or its shape is another; the
        message names the first variable and both shapes.
    """
    return load_weights(model, *open_checkpoint(prefix), may_be_missing, extend_segments)


def load_weights(model, prefix, reader, may_be_missing=(), extend_segments=False):
    """As `load_tf1_checkpoint`, from what is open; the prefix names it in messages."""
    variables = {name: variable.value for name, variable in tf1_names(model).items()}
    shapes = reader.get_variable_to_shape_map()
    rows = {}
    if extend_segments and _has_rows(variables, shapes, SEGMENT_TABLE, UNILM_ROWS):
        rows[SEGMENT_TABLE] = UNILM_ROWS
    missing = assign(prefix, reader, variables, may_be_missing, rows)
    extended = "its two segment rows extended to six: 2, 3, 4 as 0, and 5 as 1" if rows else ""
    return LoadReport(missing, _unused(set(shapes), variables), extended)


def _has_rows(variables, shapes, name, rows):
    """Whether a checkpoint's table can give the model's table these rows, and has no others."""
    if name not in shapes or name not in variables:
        return False
    theirs, ours = tuple(shapes[name]), tuple(variables[name].shape)
    return (max(rows) + 1, len(rows)) == (theirs[0], ours[0]) and theirs[1:] == ours[1:]


def assign(prefix, reader, variables, may_be_missing=(), rows=None):
    """Sets variables from an open checkpoint; none is changed unless all fit.

    Args:
      prefix, reader: as of `open_checkpoint`.
      variables: dict of name to `tf.Variable`.
      may_be_missing: as for `load_tf1_checkpoint`.
      rows: dict of name to the rows of the checkpoint's table that a variable is made of.

    Returns:
      The names that the checkpoint lacks.

    Raises:
      UserError: as for `load_tf1_checkpoint`.
    """
    shapes = reader.get_variable_to_shape_map()
    missing = [name for name in variables if name not in shapes]
    lacking = [name for name in missing if not name.startswith(tuple(may_be_missing))]
    if lacking:
        raise UserError(
            f"checkpoint {prefix} lacks {lacking[0]} ({len(lacking)} of {len(variables)} "
            "variables are missing); is it of a model or a run of this kind?"
        )
    values, rows = {}, rows or {}
    for name in variables:
        if name in missing:
            continue
        if name in rows:
            values[name] = read_tensor(reader, prefix, name)[list(rows[name])]
        elif tuple(shapes[name]) != tuple(variables[name].shape):
            raise UserError(
                f"checkpoint {prefix}: {name} has shape {shapes[name]}, and the model's is "
                f"{variables[name].shape.as_list()}; pass the config that belongs to it"
            )
        else:
            values[name] = read_tensor(reader, prefix, name)
    for name, value in values.items():
        variables[name].assign(tf.cast(value, variables[name].dtype))
    return missing


def _unused(names, variables):
    """Returns the weights that no variable took."""
    return sorted(name for name in names - set(variables) if is_weight(name, names))


def is_weight(name, names):
    """Whether a variable is a weight: no state of a run, and no optimizer's or average of one.

    Args:
      name: of the variable.
      names: of all variables of its checkpoint; slots and averages stand below their weight's.
    """
    is_state = name in STATE or name.startswith("nezha_tf/")
    return not is_state and name.rpartition("/")[0] not in names


def global_step_of(reader):
    """Returns the step that an open checkpoint was saved at, or 0 where it does not say."""
    has_step = "global_step" in reader.get_variable_to_shape_map()
    return int(reader.get_tensor("global_step")) if has_step else 0


def read_tensor(reader, prefix, name):
    """Returns a tensor of an open checkpoint; `UnreadableCheckpoint` where it is damaged."""
    try:
        return reader.get_tensor(name)
    except (tf.errors.OpError, RuntimeError, ValueError, LookupError) as error:
        raise UnreadableCheckpoint(
            f"checkpoint {prefix} is damaged at {name}: {first_line(error)}"
        ) from error


def save_tf1_checkpoint(model, prefix):
    """Writes the weights of a model as a TF1 checkpoint that the originals can load.

    Args:
      model: `NezhaEncoder` or `NezhaForPreTraining`.
      prefix: path without ending; `.index` and `.data-00000-of-00001` are written.
    """
    write_tensors(prefix, {name: variable.value for name, variable in tf1_names(model).items()})


def write_tensors(prefix, tensors):
    """Writes named tensors in the Saver V2 layout, whole or not at all.

    The index file, by which a checkpoint is found, takes its name last.

    Args:
      prefix: path without ending.
      tensors: dict of name to tensor or array.

    Raises:
      UserError: the files cannot be written.
    """
    prefix = os.fspath(prefix)
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    temporary = f"{prefix}.{os.getpid()}.tmp"
    names = sorted(tensors)
    endings = (".data-00000-of-00001", ".index")
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
        )
        for ending in endings:
            os.replace(temporary + ending, prefix + ending)
    except (tf.errors.OpError, OSError) as error:
        reason = first_line(error).replace(temporary, prefix)
        raise UserError(f"cannot write checkpoint {prefix}: {reason}") from error
    finally:
        for path in tf.io.gfile.glob(f"{temporary}*"):
            os.remove(path)


def name_newest(folder, names):
    """Writes the file `checkpoint`, by which TF1's tools find the newest one.

    Args:
      folder: of the checkpoints.
      names: of theirs without ending, the newest one last.

    Raises:
      UserError: it cannot be written.
    """
    try:
        tf.compat.v1.train.update_checkpoint_state(folder, names[-1], names)
    except tf.errors.OpError as error:
        raise UserError(f"cannot write in {folder}: {first_line(error)}") from error
