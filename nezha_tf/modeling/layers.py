"""Small parts that all layers share, with the originals' settings."""

import functools

import keras
from keras import ops

from nezha_tf.config import NORMS
from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.rows import class_of


def activation(name):
    """Returns the function of a `hidden_act`: "gelu" is the tanh form, as in the originals."""
    if name in ("gelu", "gelu_erf"):
        return functools.partial(ops.gelu, approximate=name == "gelu")
    return keras.activations.get(name)


def initializer(config):
    """Returns the initializer of all matrices, a truncated normal distribution."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


class Dense(keras.layers.Dense):
    """Keras's layer with the originals' initializer; bias and activation are one pass."""

    def __init__(self, units, config, *, hidden_act="linear", **kwargs):
        kwargs.setdefault("kernel_initializer", initializer(config))
        super().__init__(units, activation=activation(hidden_act), **kwargs)
        self.hidden_act = hidden_act

    def call(self, inputs, training=None):
        product = ops.matmul(inputs, self.kernel)
        return _activated(product, self.bias, hidden_act=self.hidden_act)


class LayerNorm(keras.layers.LayerNormalization):
    """LayerNorm over the last axis; its statistics are computed in float32.

    `prefix` is that of its name, which ends in "LayerNorm", as in the originals.
    """

    def __init__(self, config, *, prefix="", **kwargs):
        super().__init__(epsilon=config.layer_norm_eps, name=f"{prefix}LayerNorm", **kwargs)

    @property
    def scales(self):
        """The weights that `normed` takes."""
        return self.gamma, self.beta

    @staticmethod
    def normed(states, gamma, beta, *, epsilon):
        """Returns the LayerNorm of states [..., n], without a layer, in their dtype."""
        normed = ops.layer_normalization(states, gamma, beta, axis=-1, epsilon=epsilon)
        return ops.cast(normed, states.dtype)

    def call(self, states):
        return _normed(states, *self.scales, epsilon=self.epsilon, normed=self.normed)


class RMSNorm(keras.layers.RMSNormalization):
    """RMSNorm (Zhang and Sennrich, arXiv 1910.07467): no mean is taken off, and there is no bias.

    Its arguments and names are those of `LayerNorm`.
    """

    def __init__(self, config, *, prefix="", **kwargs):
        super().__init__(epsilon=config.layer_norm_eps, name=f"{prefix}RMSNorm", **kwargs)

    @property
    def scales(self):
        return (self.scale,)

    @staticmethod
    def normed(states, scale, *, epsilon):
        normed = ops.rms_normalization(states, scale, axis=-1, epsilon=epsilon)
        return ops.cast(normed, states.dtype)

    call = LayerNorm.call


def norm(config, **kwargs):
    """Returns the layer of a configuration's `norm`; the arguments are those of `LayerNorm`."""
    row = class_of("norm", config.norm, NORMS[config.norm], keras.layers.Layer)
    return row(config, **kwargs)


class LayerMix(keras.layers.Layer):
    """Mixes the states of all layers: gamma * sum_j softmax(weights)_j * state_j, in float32.

    This is equation 1 of ELMo (Peters et al., arXiv 1802.05365 §3.2), with the embeddings as the
    first layer. It begins as the plain mean: the weights are 0 and gamma is 1. ELMo's LayerNorm
    before the mixture is left out, because the states of our encoders come out of one (but for
    ALBERT's embeddings, which are mapped to the width of the layers behind it).
    """

    def __init__(self, num_states, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.num_states = num_states

    def build(self, input_shape=None):
        # Keras's layers have an attribute `weights` of their own.
        self.scores = self.add_weight(name="weights", shape=(self.num_states,), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")
        self.built = True

    def call(self, states):
        shares = ops.unstack(ops.softmax(self.scores), self.num_states)
        mixed = sum(share * state for share, state in zip(shares, states, strict=True))
        return self.gamma * mixed

    def values(self):
        """Returns dict of "embeddings", "layer_1" ... to their shares, and "gamma", to report."""
        shares = ops.convert_to_numpy(ops.softmax(self.scores)).tolist()
        names = ["embeddings", *(f"layer_{number}" for number in range(1, self.num_states))]
        gamma = float(ops.convert_to_tensor(self.gamma))
        return {**dict(zip(names, shares, strict=True)), "gamma": gamma}


@fused
def _activated(product, bias, *, hidden_act):
    if bias is not None:
        product = product + ops.cast(bias, product.dtype)
    return activation(hidden_act)(product)


@fused
def _normed(states, *scales, epsilon, normed):
    return normed(states, *scales, epsilon=epsilon)
