"""Finds the weights of a model: a run's folder, a published one, or a checkpoint."""

import os

from nezha_tf.checkpoints import hugging_face, run_folder, tf1
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.resources import model_path
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# Where older versions of sentence-transformers put the model in their folder.
TRANSFORMER_FOLDER = "0_Transformer"
# Files of weights by their ending, and the programs that read them.
_OTHER_WEIGHTS = {
    ".pdparams": "PaddlePaddle",
    ".h5": "Keras",
    ".msgpack": "Flax",
    ".onnx": "ONNX",
}


def locate(path):
    """Returns (folder of a model, path of its weights) for what `folder.open_folder` takes.

    Of several runs it is the best one; of a run's checkpoints the best if an evaluation has chosen
    one, else the newest. That there are no weights, or several, is a `UserError`.
    """
    path = model_path(path)
    # TensorFlow's file system in memory says of a checkpoint's prefix, too, that it is a folder.
    if not storage.isdir(path) or storage.exists(f"{path}.index"):
        return os.path.dirname(path) or ".", path
    folder = folder_of_model(path)
    return folder, _checkpoint_in(folder)


def weights_of(path):
    """Returns (path of the weights for `locate`'s path, whether their moving averages are meant).

    A `task.json` beside the weights says so (`uses_averages`).
    """
    folder, checkpoint = locate(path)
    return checkpoint, bool((run_folder.read_task(folder) or {}).get("uses_averages"))


def folder_of_model(path):
    """Returns the folder, or the best of several runs in it, or sentence-transformers' model."""
    if RunCheckpoints(path, {}).steps():
        return path
    inner = os.path.join(path, TRANSFORMER_FOLDER)
    has_inner = hugging_face.find_weights(path) is None and storage.isdir(inner)
    return run_folder.best_sweep_member(path) or (inner if has_inner else path)


def _checkpoint_in(folder):
    checkpoints = RunCheckpoints(folder, {}, best_metric=None)
    step = checkpoints.chosen()
    if step is not None:
        return checkpoints.path(step)
    weights = hugging_face.find_weights(folder)
    if weights:
        return weights
    prefixes = tf1.prefixes_in(folder)
    if not prefixes:
        raise UserError(
            f"no weights in {folder}: neither TF1's (*.ckpt.index) nor Hugging Face's "
            f"({', '.join(hugging_face.FILE_NAMES)}){_other_weights_in(folder)}"
        )
    if len(prefixes) > 1:
        names = ", ".join(f"{os.path.basename(prefix)}.index" for prefix in prefixes)
        raise UserError(f"several checkpoints in {folder} ({names}); remove all but one")
    return prefixes[0]


def _other_weights_in(folder):
    """Returns a clause on files of weights that are not read here, or ""."""
    names = sorted(storage.listdir(folder))
    for ending, program in _OTHER_WEIGHTS.items():
        name = next((name for name in names if name.endswith(ending)), None)
        if name:
            return f"; {name} is {program}'s, take the same model in one of these two forms"
    return ""
