"""The feed-forward sublayers."""

import keras
from keras import ops

from nezha_tf.config import FEED_FORWARDS
from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.layers import dense
from nezha_tf.modeling.rows import class_of


class FeedForward(Configured, keras.layers.Layer):
    """act(x W + b) V + c, with the act `hidden_act` (Vaswani et al., arXiv 1706.03762 §3.3)."""

    # The number of its matrices of hidden_size times intermediate_size.
    num_matrices = 2

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.intermediate = self._dense(config.intermediate_size, "intermediate", self.act)
        self.projection = self._dense(config.hidden_size, "output")

    @property
    def act(self):
        """The activation, named as `hidden_act`."""
        return self.config.hidden_act

    def _dense(self, units, name, hidden_act="linear"):
        return dense(
            units,
            self.config,
            hidden_act=hidden_act,
            use_bias=self.config.use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape=None):
        self.intermediate.build((None, None, self.config.hidden_size))
        self.projection.build((None, None, self.config.intermediate_size))
        self.built = True

    def call(self, states):
        """Maps states [B, T, hidden_size] to the same shape."""
        rows = ops.reshape(states, (-1, self.config.hidden_size))
        return ops.reshape(self.of_rows(rows), ops.shape(states))

    def of_rows(self, rows):
        """Maps rows [n, hidden_size], which are products of matrices alone, to the same shape."""
        return self.projection(self.intermediate(rows))


class GeGLU(FeedForward):
    """(gelu(x W) * x U) V (Shazeer, arXiv 2002.05202 §2), with the tanh form of gelu, as in T5.

    With two thirds of the dense layer's `intermediate_size` it has as many weights.
    """

    num_matrices = 3
    act = "gelu"

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.linear = self._dense(config.intermediate_size, "linear")

    def build(self, input_shape=None):
        super().build(input_shape)
        self.linear.build((None, None, self.config.hidden_size))

    def of_rows(self, rows):
        return self.projection(_multiplied(self.intermediate(rows), self.linear(rows)))


class SwiGLU(GeGLU):
    """(silu(x W) * x U) V: the same with the act of LLaMA."""

    act = "silu"


@fused
def _multiplied(gate, states):
    return gate * states


def of(config):
    """Returns the class of a configuration's `feed_forward`, a subclass of `FeedForward`."""
    name = config.feed_forward
    return class_of("feed_forward", name, FEED_FORWARDS[name], FeedForward)
