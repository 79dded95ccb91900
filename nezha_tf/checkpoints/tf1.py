"""Opens and writes checkpoints of TF1's Saver (V2), and tells their weights from the rest."""

import os
import re

import keras
import tensorflow as tf

from nezha_tf.checkpoints import views
from nezha_tf.checkpoints.bundle import BundleReader
from nezha_tf.checkpoints.name_table import tf1_name, tf1_names
from nezha_tf.checkpoints.refusals import UnreadableCheckpoint
from nezha_tf.modeling import lora
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
STATE = ("global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps", "bad_steps")
ENDINGS = (".index", ".data-00000-of-00001")
_ENDING = re.compile(r"\.(index|data-\d{5}-of-\d{5})$")
# The row of BERT's table from which each row of UniLM's table starts (load_model of UniLM v1).
UNILM_ROWS = (0, 1, 0, 0, 0, 1)


def open_checkpoint(prefix):
    """Returns (prefix, reader) of a checkpoint; `UnreadableCheckpoint`: it is damaged.

    The path is one without ending, or of one of its files, or a folder: its newest checkpoint.
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
    return prefix, views.unfolded(BundleReader(prefix))


def _newest_in(folder):
    try:
        state = tf.train.get_checkpoint_state(folder)
    except ValueError as error:  # It is not UTF-8, or has no name.
        raise UnreadableCheckpoint(
            f"{os.path.join(folder, 'checkpoint')} is damaged: it does not say which checkpoint is "
            "the newest; name the checkpoint itself"
        ) from error
    return state and state.model_checkpoint_path


def prefixes_in(folder):
    """Returns the prefixes of all checkpoints in a folder, sorted."""
    names = sorted(name for name in storage.listdir(folder) if name.endswith(ENDINGS[0]))
    return [os.path.join(folder, name.removesuffix(ENDINGS[0])) for name in names]


def is_weight(name, names):
    """Whether a variable is a weight, not a run's state, an optimizer's slot or an average.

    The names of slots and averages begin with that of their weight, one of `names`, and a slash.
    """
    return not is_state(name) and name.rpartition("/")[0] not in names


def is_state(name):
    """Whether a variable is a state of a run, of TF1's programs or ours."""
    return name in STATE or name.startswith("nezha_tf/")


def global_step_of(reader):
    """Returns the step of an open checkpoint, or 0 if it has none."""
    has_step = "global_step" in reader.get_variable_to_shape_map()
    return int(reader.get_tensor("global_step")) if has_step else 0


def save_tf1_checkpoint(model: keras.Model, prefix: str | os.PathLike[str]) -> None:
    """Writes the weights of a Keras model as a TF1 checkpoint that the originals can load.

    `prefix` is a path without ending; `.index` and `.data-00000-of-00001` are written. Adapters
    (`lora.enable_lora`) are merged into the kernels that they change.
    """
    tensors = {name: variable.value for name, variable in tf1_names(model).items()}
    for layer in lora.adapted_layers(model):
        tensors[tf1_name(lora.kernel_of(layer).path)] = lora.merged_kernel(layer)
    write_tensors(prefix, arrays_of(tensors))


def arrays_of(tensors):
    """Returns {name: array} of {name: tensor} of any backend.

    TensorFlow itself takes no tensor of PyTorch that has a gradient.
    """
    return {name: keras.ops.convert_to_numpy(tensor) for name, tensor in tensors.items()}


def write_tensors(prefix, tensors):
    """Writes a dict of name to tensor or array in the Saver V2 layout, complete or not at all.

    The index file, by which a checkpoint is found, gets its final name last.
    """
    prefix = os.fspath(prefix)
    storage.makedirs(os.path.dirname(prefix) or ".")
    temporary = f"{prefix}.{os.getpid()}.tmp"
    names = sorted(tensors)
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(tensors[name]) for name in names],
        )
        for ending in reversed(ENDINGS):
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

    `names` are those in the folder, without ending, the newest last.
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
