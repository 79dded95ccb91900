"""Rotary positions: queries and keys are rotated by angles proportional to the position."""

import dataclasses

import numpy as np
from keras import ops

from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.positions.base import AttentionPositions, Positions
from nezha_tf.util.errors import UserError

# A position is split into two digits of this base, so there are 2^20 positions.
_BASE = 1024


class RotaryPositions(Positions):
    """RoFormer's positions (Su et al., arXiv 2104.09864 §3.2.2), which have no weights.

    The columns 2k and 2k + 1 of a query or key are a point in the plane. It is rotated by the
    position times 10000^(-2k/H), so the product of a query and a key depends only on their
    distance. Values are not rotated (`rotary_value` is false in RoFormer's files). The head size
    must be even, else there is a `UserError`.
    """

    def __init__(self, config, max_seq_length=None, **kwargs):
        super().__init__(config, max_seq_length, **kwargs)
        if config.head_size % 2:
            raise UserError(
                f"rotary positions rotate pairs of columns, but a head has {config.head_size} "
                "(hidden_size / num_attention_heads); choose values that make this even"
            )

    def build(self, input_shape=None):
        frequency = 10000.0 ** (-np.arange(0, self.config.head_size, 2) / self.config.head_size)
        angles = [np.arange(_BASE)[:, None] * unit * frequency for unit in (_BASE, 1)]
        self._sines = [np.sin(angle).astype("float32") for angle in angles]
        self._cosines = [np.cos(angle).astype("float32") for angle in angles]
        self.built = True

    def between(self, query_positions, key_positions):
        """Returns the `Rotation` for queries and keys; positions must be below 2^20."""
        of_query = self._angles(query_positions)
        same = key_positions is query_positions
        return Rotation(of_query, of_query if same else self._angles(key_positions))

    def of_beams(self, query_positions, source_positions, target_positions, beams):
        """Rotates the query places alone; the other keys are rotated in the cache."""
        positions = ops.repeat(query_positions, beams, axis=-1)
        return self.between(positions, positions)

    def _angles(self, positions):
        """Returns (cosine, sine) of each position's angles, [..., T, H/2] each.

        In float32, a position times a frequency has an error of 1e-4 at position 1000. So both come
        from tables that were computed in float64, combined by the formulas for sums of angles.
        """
        digits = (positions // _BASE, positions % _BASE)
        (high_sin, low_sin), (high_cos, low_cos) = (
            [ops.take(table, digit, axis=0) for table, digit in zip(tables, digits, strict=True)]
            for tables in (self._sines, self._cosines)
        )
        cos = high_cos * low_cos - high_sin * low_sin
        sin = high_sin * low_cos + high_cos * low_sin
        return ops.cast(cos, self.compute_dtype), ops.cast(sin, self.compute_dtype)


@dataclasses.dataclass(frozen=True)
class Rotation(AttentionPositions):
    """Rotates queries and keys by angles, (cosine, sine), each [T, H/2] or [B, T, H/2]."""

    of_query: tuple
    of_key: tuple

    def turned(self, query, key):
        return _turned(query, *self.of_query), _turned(key, *self.of_key)


@fused
def _turned(states, cos, sin):
    """Returns states [B, N, K, H] with each pair of columns rotated by the last K angles."""
    count = ops.shape(states)[2]
    cos, sin = (part[..., -count:, :] for part in (cos, sin))
    if len(cos.shape) == 3:
        cos, sin = cos[:, None], sin[:, None]
    shape = ops.shape(states)
    pairs = ops.reshape(states, (*shape[:-1], shape[-1] // 2, 2))
    x, y = pairs[..., 0], pairs[..., 1]
    return ops.reshape(ops.stack([x * cos - y * sin, y * cos + x * sin], axis=-1), shape)
