"""Loads checkpoints of any layout."""

import os

import numpy as np

from nezha_tf.checkpoints import electra, hugging_face, tf1
from nezha_tf.checkpoints.tf1 import AVERAGE_SUFFIX
from nezha_tf.util.errors import UserError


def open_checkpoint(path, config=None, heads=()):
    """Opens a checkpoint of TF1, of ours, or of Hugging Face.

    Args:
      path: see `tf1.open_checkpoint` and `hugging_face.find_weights`; in a folder with both
        layouts, TF1's is opened if the file `checkpoint` is there, else Hugging Face's.
      config, heads: what decides which model of ELECTRA's checkpoint is read; see `electra.view`.

    Returns:
      (path for messages, reader of tensors by TF1 name with the interface of
      `tf.train.CheckpointReader`).

    Raises:
      UserError: there is no checkpoint, or it is damaged.
    """
    path, reader = _open(path)
    return path, electra.view(reader, config, heads)


def _open(path):
    """Returns what `open_checkpoint` returns; the reader has the names of the file."""
    path = os.fspath(path)
    weights_file = hugging_face.find_weights(path)
    if weights_file is None:
        return tf1.open_checkpoint(path)
    return weights_file, hugging_face.HuggingFaceReader(weights_file)


def load(model, path, may_be_missing=(), extend_segments=False, averages=False):
    """Loads the weights of a checkpoint of any layout into a model.

    Args:
      model: see `load_tf1_checkpoint`.
      path: see `open_checkpoint`.
      may_be_missing, extend_segments: see `load_tf1_checkpoint`; names are TF1's.
      averages: whether to load the moving averages instead of the weights.

    Returns:
      A `LoadReport`.

    Raises:
      UserError: see `load_tf1_checkpoint`; a weight is not finite; or there are no averages.
    """
    path, reader = _open(path)
    reader = AveragedReader(path, reader) if averages else reader
    reader = FiniteReader(path, reader)
    return tf1.load_weights(model, path, reader, may_be_missing, extend_segments)


class FiniteReader:
    """Reads weights of which each is finite; others would give outputs that mean nothing."""

    def __init__(self, path, reader):
        """Args: the result of `open_checkpoint`."""
        self._path, self._reader = path, reader

    def get_variable_to_shape_map(self):
        return self._reader.get_variable_to_shape_map()

    def get_tensor(self, name):
        """Returns the values; raises `UserError` if one is not finite."""
        values = self._reader.get_tensor(name)
        if not np.isfinite(values).all():
            raise UserError(
                f"checkpoint {self._path}: {name} holds NaN or infinity; take an earlier checkpoint"
            )
        return values


class AveragedReader:
    """Reads the moving averages instead of the weights; untrained weights have no averages."""

    def __init__(self, path, reader):
        """Args: the result of `open_checkpoint`.

        Raises:
          UserError: there are no averages.
        """
        self._reader = reader
        shapes = reader.get_variable_to_shape_map()
        ending = f"/{AVERAGE_SUFFIX}"
        self._averaged = {n.removesuffix(ending) for n in shapes if n.endswith(ending)}
        self._shapes = {name: s for name, s in shapes.items() if not name.endswith(ending)}
        if not self._averaged:
            raise UserError(
                f"checkpoint {path} holds no moving averages of weights, but its task.json or "
                "--ema_decay needs them"
            )

    def get_variable_to_shape_map(self):
        return self._shapes

    def get_tensor(self, name):
        is_averaged = name in self._averaged
        return self._reader.get_tensor(f"{name}/{AVERAGE_SUFFIX}" if is_averaged else name)
