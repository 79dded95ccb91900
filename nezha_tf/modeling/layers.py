"""Small parts that all layers share, with the originals' settings."""

import functools

import keras
from keras import ops


def activation(name):
    """Returns the function of a `hidden_act`: "gelu" is the tanh form, as in the originals."""
    if name in ("gelu", "gelu_erf"):
        return functools.partial(ops.gelu, approximate=name == "gelu")
    return keras.activations.get(name)


def initializer(config):
    """Returns the initializer of all matrices, a truncated normal distribution."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(units, config, *, dtype, name, activation=None):
    """Returns a dense layer with the originals' initializer."""
    return keras.layers.Dense(
        units,
        activation=activation,
        kernel_initializer=initializer(config),
        dtype=dtype,
        name=name,
    )


def layer_norm(config, *, dtype):
    """Returns a LayerNorm over the last axis; Keras computes its statistics in float32."""
    return keras.layers.LayerNormalization(
        epsilon=config.layer_norm_eps, dtype=dtype, name="LayerNorm"
    )
