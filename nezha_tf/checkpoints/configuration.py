"""Reads the configuration that lies beside weights of any layout."""

import os

from nezha_tf.checkpoints import electra, hugging_face, loading, tf1
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE
from nezha_tf.config import (
    UNILM_SEGMENTS,
    NezhaConfig,
    encoding_of_tf1,
    hugging_face_model,
    read_values,
    told_defaults,
)
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# The epsilon of UniLM's LayerNorm (modeling.py of UniLM v1); its configuration does not say it.
UNILM_LAYER_NORM_EPS = 1e-5
_ELECTRA = "electra"


def read_config(path, checkpoint, is_trained=False):
    """Reads the configuration of the model whose weights are in a checkpoint.

    A configuration of weights of PyTorch is read as PyTorch's code reads it, even if it has no
    `model_type`: its "gelu" is the exact function. So is that of a TF1 checkpoint of ELECTRA.

    Args:
      path: a `bert_config.json`, or a `config.json` of Hugging Face.
      checkpoint: the weights, for `loading.open_checkpoint`; or a folder, which may have none.
      is_trained: whether the model will be trained.

    Returns:
      (`NezhaConfig`, list of lines that tell the user what was assumed of keys that the file
      lacks).

    Raises:
      UserError: the configuration is missing or invalid, or the weights are damaged.
    """
    values = read_values(path)
    assumed, notes = {}, []
    if "model_type" not in values and "position_encoding" not in values:
        weights = hugging_face.find_weights(os.fspath(checkpoint))
        found = _assumed(path, values, weights) if weights else _assumed_of_tf1(path, checkpoint)
        assumed, notes = found
    try:
        config = NezhaConfig.from_dict({**values, **assumed})
    except UserError as error:
        raise UserError(f"config {path}: {error}") from error
    defaults = told_defaults(path, config, is_trained)
    return config, notes + ([defaults] if defaults else [])


def _assumed(path, values, weights):
    """Returns (dict of the keys that PyTorch's code takes for granted, list of lines on them)."""
    encoding = encoding_of_tf1(values.get("use_relative_position"))
    groups = values.get("num_hidden_groups")
    model = hugging_face_model(encoding, groups) or hugging_face_model(encoding)
    _, reader = loading.open_checkpoint(weights)
    model_type = _ELECTRA if reader.model_type == _ELECTRA else model.model_type
    assumed, notes = {"model_type": model_type}, [_told(path, f"{model_type} in PyTorch")]
    if "layer_norm_eps" in values:
        return assumed, notes
    shapes = reader.get_variable_to_shape_map()
    if shapes.get(SEGMENT_TABLE, [0])[0] == UNILM_SEGMENTS:
        assumed["layer_norm_eps"] = UNILM_LAYER_NORM_EPS
        notes.append(
            "the model has six segment rows: read as a UniLM, whose LayerNorm has an epsilon of "
            f"{UNILM_LAYER_NORM_EPS} (layer_norm_eps)"
        )
    return assumed, notes


def _assumed_of_tf1(path, checkpoint):
    """Returns what `_assumed` does, for weights of TF1: only ELECTRA's differ from the others."""
    prefix = os.fspath(checkpoint)
    if storage.isdir(prefix):
        found = [name for name in storage.listdir(prefix) if name.endswith(".index")]
        prefix = os.path.join(prefix, found[0].removesuffix(".index")) if len(found) == 1 else ""
    try:
        shapes = tf1.open_checkpoint(prefix)[1].get_variable_to_shape_map()
    except UserError:
        return {}, []  # There are no weights yet, or whoever loads them tells what is wrong.
    is_electra = electra.is_electra(shapes)
    return ({"model_type": _ELECTRA}, [_told(path, "ELECTRA")]) if is_electra else ({}, [])


def _told(path, whose):
    return (
        f"{path} has no model_type: read as the configuration of {whose}, "
        'where "gelu" is the exact function (gelu_erf)'
    )
