"""Reads TF1 Saver checkpoints (V2) into our models, and writes them."""

import os
import re
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.checkpoints import electra, folding, structure
from nezha_tf.checkpoints.bundle import BundleReader
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.refusals import FLOATS, UnreadableCheckpoint, no_float
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, first_line

SEGMENT_TABLE = "bert/embeddings/token_type_embeddings"
# Tables, and the key of the configuration that says how many rows each has.
ROW_KEYS = {
    "bert/embeddings/word_embeddings": "vocab_size",
    "bert/embeddings/position_embeddings": "max_position_embeddings",
    SEGMENT_TABLE: "type_vocab_size",
}
# TF1's variables of the training state, of Adam, and of the loss scale with which NEZHA's programs
# train in float16 (tf.contrib.mixed_precision), beside weights and their slots.
STATE = (
    "global_step",
    "beta1_power",
    "beta2_power",
    "loss_scale",
    "good_steps",
    "bad_steps",
)
# The name of a moving average is its weight's name, a slash and this.
AVERAGE_SUFFIX = "ExponentialMovingAverage"
# What decides whether a run has a state, by a part of the state's name in a checkpoint.
_DECIDES_ON_STATE = {
    f"/{AVERAGE_SUFFIX}": "--ema_decay",
    "nezha_tf/loss_scale": "--precision",
    "nezha_tf/memory": "--memory_length",
    "nezha_tf/optimizer": "--optimizer and --freeze_layers",
    "nezha_tf/random_state": "the dropout of --bert_config_file",
}
_DECIDES_ON_SLOTS = "--optimizer and --freeze_layers"
_ENDING = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")
# The row of BERT's table from which each row of UniLM's table starts (load_model of UniLM v1).
UNILM_ROWS = (0, 1, 0, 0, 0, 1)


class LoadReport(NamedTuple):
    """The differences between a loaded checkpoint and the model.

    Attributes:
      missing: variables that the checkpoint lacks; they kept their values.
      unused: weights of the checkpoint that the model does not have.
      extended: a clause on a table that was made larger, or "".
    """

    missing: list[str]
    unused: list[str]
    extended: str = ""


def open_checkpoint(prefix):
    """Opens a checkpoint.

    Args:
      prefix: path without ending. A path of one of its files is allowed too, and a folder, which
        means its newest checkpoint.

    Returns:
      (prefix, a `BundleReader`, or a `folding.FoldedReader` of one).

    Raises:
      UserError: there is no checkpoint; `UnreadableCheckpoint`: it is damaged.
    """
    prefix = _ENDING.sub("", os.fspath(prefix))
    is_there = storage.exists(f"{prefix}.index")
    # TensorFlow's file system in memory says of a checkpoint's name, too, that it is a folder.
    if not is_there and storage.isdir(prefix):
        newest = _newest_in(prefix)
        if not newest or not storage.exists(f"{newest}.index"):
            raise UserError(
                f"no checkpoint in the folder {prefix}: neither TF1's (model.ckpt-*) nor Hugging "
                "Face's (model.safetensors, pytorch_model.bin)"
            )
        prefix, is_there = newest, True
    if not is_there:
        raise UserError(f"no checkpoint at {prefix}: {prefix}.index does not exist")
    return prefix, folding.view(BundleReader(prefix))


def _newest_in(folder):
    """Returns the prefix that the file `checkpoint` of a folder names; None: it names none."""
    try:
        state = tf.train.get_checkpoint_state(folder)
    except ValueError as error:  # It is not UTF-8, or has no name.
        raise UnreadableCheckpoint(
            f"{os.path.join(folder, 'checkpoint')} is damaged: it does not say which checkpoint is "
            "the newest; name the checkpoint itself"
        ) from error
    return state and state.model_checkpoint_path


def load_tf1_checkpoint(model, prefix, may_be_missing=(), extend_segments=False):
    """Loads the weights of a TF1 checkpoint, or of one of ours, into a model.

    Optimizer slots and the step are ignored. Either all weights are changed or, after an error,
    none.

    Args:
      model: a Keras model whose variables are in the name table, such as `NezhaForPreTraining`.
      prefix: see `open_checkpoint`.
      may_be_missing: prefixes of names that keep their current values if the checkpoint lacks
        them ("cls/" for the pretraining heads).
      extend_segments: whether BERT's table of two segments is extended to UniLM's six if the
        model has six: 2, 3 and 4 start with the values of 0, and 5 with those of 1 (UniLM v1).

    Returns:
      A `LoadReport`.

    Raises:
      UserError: there is no checkpoint, or a variable is missing or has another shape; the
        message names the first such variable and both shapes. Or its layers or embeddings are
        not those of the configuration (see `structure.fault`).
    """
    return load_weights(model, *open_checkpoint(prefix), may_be_missing, extend_segments)


def load_weights(model, prefix, reader, may_be_missing=(), extend_segments=False):
    """Like `load_tf1_checkpoint`, from an open reader; `prefix` is only for messages."""
    variables = {name: variable.value for name, variable in tf1_names(model).items()}
    heads = [name for name in variables if not name.startswith("bert/")]
    reader = electra.view(reader, getattr(model, "config", None), heads)
    shapes = reader.get_variable_to_shape_map()
    groups = getattr(getattr(model, "config", None), "num_hidden_groups", None)
    expected = {name: variable.shape for name, variable in variables.items()}
    fault = structure.foreign(shapes, expected) or structure.fault(shapes, expected, groups)
    if fault:
        raise UserError(f"checkpoint {prefix} {fault}")
    rows = {}
    if extend_segments and _has_rows(variables, shapes, SEGMENT_TABLE, UNILM_ROWS):
        rows[SEGMENT_TABLE] = UNILM_ROWS
    missing = assign(prefix, reader, variables, may_be_missing, rows)
    extended = "its two segment rows extended to six: 2, 3, 4 as 0, and 5 as 1" if rows else ""
    unused = _unused(set(shapes), variables) + _unused(set(getattr(reader, "others", ())), ())
    return LoadReport(missing, unused, extended)


def _has_rows(variables, shapes, name, rows):
    """Whether a checkpoint's table has exactly the rows needed to make the model's table."""
    if name not in shapes or name not in variables:
        return False
    theirs, ours = tuple(shapes[name]), tuple(variables[name].shape)
    return (max(rows) + 1, len(rows)) == (theirs[0], ours[0]) and theirs[1:] == ours[1:]


def assign(prefix, reader, variables, may_be_missing=(), rows=None):
    """Sets variables from an open checkpoint: all of them or, after an error, none.

    Args:
      prefix, reader: the result of `open_checkpoint`.
      variables: dict of name to `tf.Variable`.
      may_be_missing: see `load_tf1_checkpoint`.
      rows: dict of name to the rows of the checkpoint's table that make up a variable.

    Returns:
      List of the names that the checkpoint lacks.

    Raises:
      UserError: see `load_tf1_checkpoint`; of a missing state of training, the message names the
        flags that decide on it.
    """
    shapes = reader.get_variable_to_shape_map()
    missing = [name for name in variables if name not in shapes]
    lacking = [name for name in missing if not name.startswith(tuple(may_be_missing))]
    if lacking:
        raise UserError(f"checkpoint {prefix} {_lack(prefix, lacking, variables, shapes)}")
    values, rows = {}, rows or {}
    for name in variables:
        if name in missing:
            continue
        if name in rows:
            values[name] = reader.get_tensor(name)[list(rows[name])]
        elif tuple(shapes[name]) != tuple(variables[name].shape):
            # Names that TF1 does not have are states of the run, such as a memory.
            is_state = name.startswith("nezha_tf/")
            needed = "flags that it was begun with" if is_state else "config that belongs to it"
            if name in ROW_KEYS:
                needed += f" ({ROW_KEYS[name]} says the number of rows)"
            raise UserError(
                f"checkpoint {prefix}: {name} has shape {shapes[name]}, and the model's is "
                f"{variables[name].shape.as_list()}; pass the {needed}"
            )
        else:
            values[name] = reader.get_tensor(name)
        if (values[name].dtype.name in FLOATS) != variables[name].dtype.is_floating:
            raise no_float(prefix, name, values[name].dtype.name)
    for name, value in values.items():
        variables[name].assign(tf.cast(value, variables[name].dtype))
    return missing


def _lack(prefix, lacking, variables, found):
    """Returns a message on missing variables: weights, or else states of training.

    Args:
      prefix: the checkpoint, for the message.
      lacking: list of the missing names.
      variables: dict of the names that are needed.
      found: the names in the checkpoint.
    """
    weights = [name for name in lacking if is_weight(name, variables)]
    text = (
        f"lacks {(weights or lacking)[0]} ({len(lacking)} of {len(variables)} variables are "
        "missing)"
    )
    is_discriminator = any(name.startswith("discriminator_predictions/") for name in found)
    if is_discriminator and all(name.startswith("cls/predictions/") for name in weights):
        return (
            f"{text}: it is ELECTRA's discriminator, which predicts no tokens; take the generator, "
            "with its own configuration"
        )
    if weights:
        return f"{text}; is it of a model or a run of this kind?"
    flags = sorted(set(filter(None, (_decides_on(name, variables) for name in lacking))))
    if flags:
        text += f", a state of training that depends on {', '.join(flags)}"
    return (
        f"{text}; pass the flags with which the run was begun, or begin a new run in another "
        f"--output_dir with --init_checkpoint={prefix}"
    )


def _decides_on(name, variables):
    """Returns the flags that decide whether a run has a state; None: every run has it."""
    for part, flags in _DECIDES_ON_STATE.items():
        if part in name:
            return flags
    return _DECIDES_ON_SLOTS if name.rpartition("/")[0] in variables else None


def _unused(names, variables):
    """Returns the names of a checkpoint's weights that the model does not have, sorted."""
    return sorted(name for name in names - set(variables) if is_weight(name, names))


def is_weight(name, names):
    """Whether a variable is a weight, not a run's state, an optimizer's slot or an average.

    Args:
      name: the variable's name.
      names: the names of all variables in the checkpoint; the names of slots and averages begin
        with their weight's name and a slash.
    """
    is_state = name in STATE or name.startswith("nezha_tf/")
    return not is_state and name.rpartition("/")[0] not in names


def global_step_of(reader):
    """Returns the step of an open checkpoint, or 0 if it has none."""
    has_step = "global_step" in reader.get_variable_to_shape_map()
    return int(reader.get_tensor("global_step")) if has_step else 0


def save_tf1_checkpoint(model, prefix):
    """Writes the weights of a model as a TF1 checkpoint that the originals can load.

    Args:
      model: a Keras model whose variables are in the name table.
      prefix: path without ending; `.index` and `.data-00000-of-00001` are written.

    Raises:
      UserError: the files cannot be written.
    """
    write_tensors(prefix, {name: variable.value for name, variable in tf1_names(model).items()})


def write_tensors(prefix, tensors):
    """Writes named tensors in the Saver V2 layout: a complete checkpoint, or nothing.

    The index file, by which a checkpoint is found, gets its final name last.

    Args:
      prefix: path without ending.
      tensors: dict of name to tensor or array.

    Raises:
      UserError: the files cannot be written.
    """
    prefix = os.fspath(prefix)
    storage.makedirs(os.path.dirname(prefix) or ".")
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
            storage.replace(temporary + ending, prefix + ending)
    except (tf.errors.OpError, OSError) as error:
        reason = first_line(error).replace(temporary, prefix)
        raise UserError(f"cannot write checkpoint {prefix}: {reason}") from error
    finally:
        folder, begun = os.path.split(temporary)
        for name in storage.listdir(folder or "."):
            if name.startswith(begun):
                storage.remove(os.path.join(folder, name))


def name_newest(folder, names):
    """Writes the file `checkpoint`, by which TF1's tools find the newest checkpoint.

    Args:
      folder: the checkpoints' folder.
      names: list of their names without folder and ending, the newest last.

    Raises:
      UserError: the file cannot be written.
    """
    # Of a folder whose path is not absolute, TensorFlow takes the names as seen from where the
    # program runs, and writes them as seen from the folder.
    if storage.is_remote(folder):
        names = [os.path.join(folder, name) for name in names]
    else:
        folder = os.path.abspath(folder)
    try:
        tf.compat.v1.train.update_checkpoint_state(folder, names[-1], names)
    except tf.errors.OpError as error:
        raise UserError(f"cannot write in {folder}: {first_line(error)}") from error
