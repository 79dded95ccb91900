"""Small parts that all layers share, with the originals' settings."""

import contextlib
import gc

import keras
import numpy as np
from keras import ops

from nezha_tf.config import NORMS
from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.rows import class_of


def activation(name):
    """Returns the function of a `hidden_act`: "gelu" is the tanh form, as in the originals."""
    return {"gelu": gelu, "gelu_erf": gelu_erf}.get(name) or keras.activations.get(name)


@keras.saving.register_keras_serializable("nezha_tf")
def gelu(states):
    return ops.gelu(states, approximate=True)


@keras.saving.register_keras_serializable("nezha_tf")
def gelu_erf(states):
    return ops.gelu(states, approximate=False)


def initializer(config):
    """Returns the initializer of all matrices, a truncated normal distribution."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


@keras.saving.register_keras_serializable("nezha_tf")
class Dense(keras.layers.Dense):
    """Keras's layer whose bias and activation are one pass."""

    def call(self, inputs, training=None):
        return _activated(product(inputs, [self]), self.bias, act=self.activation)

    def quantize(self, mode=None, type_check=True, config=None):
        # With the check, Keras quantizes its own class alone.
        with _left_out_of_collections():
            super().quantize(mode, type_check=False, config=config)


@contextlib.contextmanager
def _left_out_of_collections():
    """Lets the garbage collector pass over, within the block, all objects that are there before.

    Keras collects after each variable that it deletes, and visits all that TensorFlow's import has
    made: half a second for each kernel. Where somebody has frozen objects, only theirs are left
    out, because no call could tell them from others later.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def product(inputs, parts):
    """Returns the products of inputs and the kernels of `Dense` layers, side by side.

    With adapters they are x W + s (x A) B (LoRA, Hu et al., arXiv 2106.09685 §4.1, equation 3).
    Keras multiplies by W + s A B, whose gradient is as large as that of W and as slow; in half
    precision it also loses what is small beside W.

    Args:
      inputs: [..., n].
      parts: list of built `Dense` layers of n inputs that are not quantized.

    Returns:
      [..., sum of the layers' units] in their compute dtype, without biases and activations.
    """
    is_adapted = all(part.lora_enabled for part in parts)
    kernels = [part._kernel if is_adapted else part.kernel for part in parts]
    made = matrix_product(inputs, side_by_side(kernels, axis=1))
    if not is_adapted:
        return made
    ranks = np.cumsum([part.lora_rank for part in parts])[:-1]
    low = matrix_product(inputs, side_by_side([part.lora_kernel_a for part in parts], axis=1))
    low = ops.split(low, ranks, axis=-1) if len(parts) > 1 else [low]
    more = [
        matrix_product(part.lora_alpha / part.lora_rank * each, part.lora_kernel_b)
        for each, part in zip(low, parts, strict=True)
    ]
    return made + side_by_side(more, axis=-1)


def matrix_product(states, matrix):
    """Returns the product of states [..., n] and a matrix [n, m]: [..., m], in their dtype.

    As in the originals (`reshape_to_matrix` of BERT's modeling.py) it is one product of matrices.
    Keras makes twelve operations of a product with more axes, for which a short text waits.
    """
    *outer, size = ops.shape(states)
    if len(outer) == 1:
        return ops.matmul(states, matrix)
    made = ops.matmul(ops.reshape(states, (-1, size)), matrix)
    return ops.reshape(made, (*outer, matrix.shape[-1]))


def side_by_side(values, axis):
    """Returns tensors concatenated; a single one as it is."""
    return ops.concatenate(values, axis=axis) if len(values) > 1 else values[0]


def dense(units, config, *, hidden_act="linear", **kwargs):
    """Returns a `Dense` with the originals' initializer."""
    return Dense(units, activation(hidden_act), kernel_initializer=initializer(config), **kwargs)


@keras.saving.register_keras_serializable("nezha_tf")
class LayerNorm(keras.layers.LayerNormalization):
    """LayerNorm over the last axis; its statistics are computed in float32."""

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


@keras.saving.register_keras_serializable("nezha_tf")
class RMSNorm(keras.layers.RMSNormalization):
    """RMSNorm (Zhang and Sennrich, arXiv 1910.07467): no mean is taken off, and there is no bias.

    Its methods are those of `LayerNorm`.
    """

    @property
    def scales(self):
        return (self.scale,)

    @staticmethod
    def normed(states, scale, *, epsilon):
        normed = ops.rms_normalization(states, scale, axis=-1, epsilon=epsilon)
        return ops.cast(normed, states.dtype)

    call = LayerNorm.call


def norm(config, prefix="", **kwargs):
    """Returns the layer of a configuration's `norm`.

    Its name is that of its class behind a prefix: "LayerNorm", as in the originals.
    """
    row = class_of("norm", config.norm, NORMS[config.norm], keras.layers.Layer)
    return row(epsilon=config.layer_norm_eps, name=f"{prefix}{row.__name__}", **kwargs)


@keras.saving.register_keras_serializable("nezha_tf")
class LayerMix(keras.layers.Layer):
    """Mixes the states of all layers: gamma * sum_j softmax(weights)_j * state_j, in float32.

    This is equation 1 of ELMo (Peters et al., arXiv 1802.05365 §3.2), with the embeddings as the
    first layer. It begins as the plain mean: the weights are 0 and gamma is 1. ELMo's LayerNorm
    before the mixture is left out, because the states of our encoders come out of one (but for
    ALBERT's embeddings, which are mapped to the width of the layers behind it).
    """

    def __init__(self, num_states, **kwargs):
        super().__init__(**{**kwargs, "dtype": "float32"})
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
def _activated(product, bias, *, act):
    if bias is not None:
        product = product + ops.cast(bias, product.dtype)
    return act(product)


@fused
def _normed(states, *scales, epsilon, normed):
    return normed(states, *scales, epsilon=epsilon)


def gather_positions(sequence_output, positions):
    """Returns the vectors of sequence_output at positions int [B, P]: [B, P, hidden_size]."""
    batch, length, hidden = ops.shape(sequence_output)
    rows = positions + ops.arange(batch, dtype=positions.dtype)[:, None] * length
    return ops.take(ops.reshape(sequence_output, (batch * length, hidden)), rows, axis=0)


def put_positions(sequence_output, positions, vectors):
    """Returns sequence_output [B, T, n] with vectors [B, P, n] at positions int [B, P].

    The positions of an example differ.
    """
    batch, length, size = ops.shape(sequence_output)
    rows = positions + ops.arange(batch, dtype=positions.dtype)[:, None] * length
    changed = ops.scatter_update(
        ops.reshape(sequence_output, (batch * length, size)),
        ops.reshape(rows, (-1, 1)),
        ops.reshape(vectors, (-1, size)),
    )
    return ops.reshape(changed, (batch, length, size))
