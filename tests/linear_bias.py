"""A user's own position encoding: attention scores fall with the distance."""

import dataclasses

import keras
import numpy as np
from keras import ops

from nezha_tf.config import POSITION_ENCODINGS, PositionEncoding
from nezha_tf.modeling.positions.base import AttentionPositions, Positions


class LinearBiasPositions(Positions):
    """ALiBi (Press et al., arXiv 2108.12409 §3), in both directions, with trained slopes."""

    def build(self, input_shape=None):
        heads = self.config.num_attention_heads
        start = keras.initializers.Constant(2.0 ** (-8 * np.arange(1, heads + 1) / heads))
        self.slopes = self.add_weight(name="slopes", shape=(heads,), initializer=start)
        self.built = True

    def between(self, query_positions, key_positions):
        """Returns the `ScoreBias` of queries [T] or [B, T] and keys [S] or [B, S]."""
        distance = ops.abs(key_positions[..., None, :] - query_positions[..., :, None])
        distance = ops.cast(distance, self.compute_dtype)[..., None, :, :]
        slopes = ops.cast(self.slopes, self.compute_dtype)
        return ScoreBias(-slopes[:, None, None] * distance)


@dataclasses.dataclass(frozen=True)
class ScoreBias(AttentionPositions):
    """A bias of the scores that does not depend on the queries: [N, T, S] or [B, N, T, S]."""

    bias: object

    def scores(self, query):
        """See `AttentionPositions`."""
        return self.bias


POSITION_ENCODINGS["linear_bias"] = PositionEncoding(f"{__name__}:LinearBiasPositions")
