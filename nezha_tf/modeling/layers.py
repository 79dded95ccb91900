"""Small parts that all layers share, with the originals' settings."""

import functools

import keras
from keras import ops

from nezha_tf.modeling.between_products import fused
from nezha_tf.modeling.dropout import dropped


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


def times_kernel(states, layer):
    """Returns states [..., n] times the kernel of a dense layer, in the dtype of the states.

    Keras casts weights by itself only in a layer's own call.
    """
    return ops.matmul(states, ops.cast(layer.kernel, states.dtype))


def activated(states, layer, hidden_act):
    """Returns the activation of what a dense layer makes of states [..., n], as [..., units].

    Args:
      states: tensor of the compute dtype.
      layer: the dense layer, which has no activation of its own.
      hidden_act: see `activation`.
    """
    return _activated(times_kernel(states, layer), layer.bias, hidden_act=hidden_act)


def added_and_normed(states, layer, dropout, layer_norm, residual, training, keys=None):
    """Returns LayerNorm(dropout(layer(states)) + residual), [B, T, hidden_size].

    It is the end of each half of a layer (`transformer_model` of BERT's modeling.py).

    Args:
      states: [B, T, n].
      layer: the dense layer.
      dropout: a `Dropout`.
      layer_norm: the result of `layer_norm`.
      residual: [B, T, hidden_size].
      training, keys: see `Dropout.call`.
    """
    return _added_and_normed(
        times_kernel(states, layer),
        layer.bias,
        residual,
        layer_norm.gamma,
        layer_norm.beta,
        dropout.keys_of_call(training, keys),
        rate=dropout.rate,
        epsilon=layer_norm.epsilon,
    )


def normed(states, gamma, beta, epsilon):
    """Returns the LayerNorm of states [..., n] as `layer_norm` computes it, for `fused` parts."""
    return ops.cast(
        ops.layer_normalization(states, gamma, beta, axis=-1, epsilon=epsilon), states.dtype
    )


@fused
def _activated(product, bias, *, hidden_act):
    return activation(hidden_act)(product + ops.cast(bias, product.dtype))


@fused
def _added_and_normed(product, bias, residual, gamma, beta, keys, *, rate, epsilon):
    return normed(
        dropped(product + ops.cast(bias, product.dtype), keys, rate) + residual,
        gamma,
        beta,
        epsilon,
    )
