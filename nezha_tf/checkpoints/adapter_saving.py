"""Saves the adapters of a model without the model that they change."""

import os

import numpy as np

from nezha_tf.checkpoints import adapters, loading, tf1
from nezha_tf.checkpoints.adapters import Adapters
from nezha_tf.checkpoints.name_table import tf1_name, tf1_names
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.modeling import lora
from nezha_tf.resources import model_path
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError


def save_adapters(model, prefix, base):
    """Writes the adapters of a Keras model, and what is trained beside them, as a TF1 checkpoint.

    `load` puts them and the base together: into any model of the class, with or without adapters.
    The file `adapters.json` beside the checkpoint names the base; a folder has adapters of one.

    Args:
      model: a model with `enable_lora`.
      prefix: a path without ending, as for `save_tf1_checkpoint`.
      base: the model whose weights the frozen ones are: a checkpoint, a folder, "mini" or the name
        of a model of a hub.

    Raises:
      UserError: the model has no adapters, or the base is not there or has other weights.
    """
    if not lora.adapted_layers(model):
        raise UserError("the model has no adapters to save; see nezha_tf.enable_lora")
    saved = saved_weights(model)
    reader = loading.open_base(base, model.config, saved)
    there = reader.get_variable_to_shape_map()
    for name, variable in tf1_names(model).items():
        is_frozen = name in there and name not in saved
        if is_frozen and not np.array_equal(reader.get_tensor(name), variable):
            raise UserError(f"{name} of the model is not that of {base}; name the model's own base")
    found = adapters_of(model, base, saved)
    tensors = {name: variable.value for name, variable in saved.items()}
    tf1.write_tensors(prefix, tf1.arrays_of(tensors))
    adapters.write(os.path.dirname(os.fspath(prefix)) or ".", found)


def saved_weights(model):
    """Returns {TF1 name: variable} of the weights that are saved of a model.

    Without adapters these are all; with them only what is trained, and the table of segments, which
    may have more rows than that of the base.
    """
    weights = tf1_names(model)
    if not lora.adapted_layers(model):
        return weights
    found = {tf1_name(variable.path): variable for variable in model.trainable_variables}
    return {tf1.SEGMENT_TABLE: weights[tf1.SEGMENT_TABLE], **found}


def adapters_of(model, base, saved):
    """Returns the `Adapters` of a model with them.

    Args:
      model: a Keras model with a `config`.
      base: see `save_adapters`.
      saved: the names in the checkpoint.

    Raises:
      UserError: see `save_adapters`; or the adapters have several ranks or alphas.
    """
    sizes = {(layer.lora_rank, layer.lora_alpha) for layer in lora.adapted_layers(model)}
    if len(sizes) > 1:
        raise UserError("the adapters of a model are saved alone if all have one rank and alpha")
    digest = adapters.fingerprint(loading.open_base(base, model.config, saved), saved)
    return Adapters(_lasting(base), digest, *sizes.pop())


def _lasting(path):
    """Returns a name of the weights that means the same from every folder."""
    if model_path(path) != os.fspath(path):  # the name of a model
        return path
    checkpoint, _ = weights_of(path)
    return checkpoint if storage.is_remote(checkpoint) else os.path.abspath(checkpoint)
