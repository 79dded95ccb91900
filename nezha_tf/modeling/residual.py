"""Residual connections: where the norm of a sublayer stands."""

import keras

from nezha_tf.config import NORM_POSITIONS
from nezha_tf.modeling import layers
from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.dropout import Dropout, dropped
from nezha_tf.modeling.rows import class_of


class Residual(Configured, keras.layers.Layer):
    """The dropout, the sum and the norm around a sublayer, which reads `before(states)`.

    If its results are not normed (`is_normed`), a norm follows the last layer.
    """

    is_normed = True

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=self.dtype_policy)
        self.norm = layers.norm(config, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        self.norm.build(input_shape)
        self.built = True

    def before(self, states):
        """Returns what the sublayer reads, of the shape of the states, [B, T, hidden_size]."""
        raise NotImplementedError(f"{type(self).__name__} has no before()")

    def call(self, states, update, training=False, dropout_key=None):
        """Adds `update`, the sublayer's result, to the states; for the key see `Dropout.call`."""
        raise NotImplementedError(f"{type(self).__name__} has no call()")


class PostNorm(Residual):
    """norm(x + dropout(f(x))): the original Transformer (arXiv 1706.03762 §3.1), BERT, NEZHA."""

    def before(self, states):
        return states

    def call(self, states, update, training=False, dropout_key=None):
        return _added_and_normed(
            states,
            update,
            self.dropout.keys_of_call(training, dropout_key),
            *self.norm.scales,
            rate=self.dropout.rate,
            epsilon=self.norm.epsilon,
            normed=self.norm.normed,
        )


class PreNorm(Residual):
    """x + dropout(f(norm(x))) (Xiong et al., arXiv 2002.04745), which needs less warmup."""

    is_normed = False

    def before(self, states):
        return self.norm(states)

    def call(self, states, update, training=False, dropout_key=None):
        key = self.dropout.keys_of_call(training, dropout_key)
        return _added(states, update, key, rate=self.dropout.rate)


def of(config):
    """Returns the class of a configuration's `norm_position`, a subclass of `Residual`."""
    position = config.norm_position
    return class_of("norm_position", position, NORM_POSITIONS[position], Residual)


@fused
def _added_and_normed(states, update, keys, *scales, rate, epsilon, normed):
    return normed(dropped(update, keys, rate) + states, *scales, epsilon=epsilon)


@fused
def _added(states, update, keys, *, rate):
    return dropped(update, keys, rate) + states
