"""Scores that fall with the distance: a position encoding of one's own."""

import dataclasses

import keras
import numpy as np
from keras import ops

from nezha_tf.config import POSITION_ENCODINGS, PositionEncoding
from nezha_tf.modeling.positions.base import AttentionPositions, Positions


class LinearBiasPositions(Positions):
    """ALiBi (Press et al., arXiv 2108.12409 §3), to both sides, with slopes that are trained."""

    def build(self, input_shape=None):
        heads = self.config.num_attention_heads
        start = keras.initializers.Constant(2.0 ** (-8 * np.arange(1, heads + 1) / heads))
        self.slopes = self.add_weight(name="slopes", shape=(heads,), initializer=start)
        self.built = True

    def between(self, query_positions, key_positions):
        """Returns `ScoreBias` of queries [T] or [B, T] and keys [S] or [B, S]."""
        distance = ops.abs(key_positions[..., None, :] - query_positions[..., :, None])
        distance = ops.cast(distance, self.compute_dtype)[..., None, :, :]
        slopes = ops.cast(self.slopes, self.compute_dtype)
        return ScoreBias(-slopes[:, None, None] * distance)


@dataclasses.dataclass(frozen=True)
class ScoreBias(AttentionPositions):
    """What is added to the scores, whatever the queries are: [N, T, S] or [B, N, T, S]."""

    bias: object

    def scores(self, query):
        """As of `AttentionPositions`."""
        return self.bias


POSITION_ENCODINGS["linear_bias"] = PositionEncoding(f"{__name__}:LinearBiasPositions")
