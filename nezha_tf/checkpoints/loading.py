"""Loading a checkpoint of whatever layout."""

import os

from nezha_tf.checkpoints import hugging_face, tf1


def open_checkpoint(path):
    """Opens a checkpoint of TF1, of ours, or of Hugging Face.

    Args:
      path: as for `tf1.open_checkpoint` or `hugging_face.find_weights`; in a folder that has both,
        TF1's.

    Returns:
      (path, reader): what it is called in messages, and what gives its tensors by TF1 name with
      the interface of `tf.train.CheckpointReader`.

    Raises:
      UserError: no checkpoint there, or a damaged one.
    """
    path = os.fspath(path)
    weights_file = hugging_face.find_weights(path)
    if weights_file is None:
        return tf1.open_checkpoint(path)
    return weights_file, hugging_face.HuggingFaceReader(weights_file)


def load(model, path, may_be_missing=(), extend_segments=False):
    """Loads the weights of a checkpoint of whatever layout into a model.

    Args:
      model: as for `load_tf1_checkpoint`.
      path: as for `open_checkpoint`.
      may_be_missing, extend_segments: as for `load_tf1_checkpoint`; names are TF1's.

    Returns:
      `LoadReport`.

    Raises:
      UserError: as for `load_tf1_checkpoint`.
    """
    return tf1.load_weights(model, *open_checkpoint(path), may_be_missing, extend_segments)
