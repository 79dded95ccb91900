"""The learned mixture of all layers' outputs (ELMo's scalar mix)."""

import keras
from keras import ops


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
        """Mixes a list of `num_states` tensors of one shape; returns float32 of this shape."""
        shares = ops.unstack(ops.softmax(self.scores), self.num_states)
        mixed = sum(share * state for share, state in zip(shares, states, strict=True))
        return self.gamma * mixed

    def values(self):
        """Returns the values to report: dict of "embeddings", "layer_1" and so on, and "gamma".

        The values are float: each layer's share of the mixture, which together are 1, and gamma.
        """
        shares = ops.convert_to_numpy(ops.softmax(self.scores)).tolist()
        names = ["embeddings", *(f"layer_{number}" for number in range(1, self.num_states))]
        gamma = float(ops.convert_to_tensor(self.gamma))
        return {**dict(zip(names, shares, strict=True)), "gamma": gamma}
