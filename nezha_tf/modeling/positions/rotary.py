"""Rotary positions: queries and keys are turned by angles that grow with the position."""

import dataclasses

import numpy as np
from keras import ops

from nezha_tf.errors import UserError
from nezha_tf.modeling.positions.base import AttentionPositions, Positions

# A position is written with two digits of this base: there are 2^20 of them.
_BASE = 1024


class RotaryPositions(Positions):
    """RoFormer's positions (Su et al., arXiv 2104.09864 §3.2.2); there is nothing to train.

    The columns 2k and 2k + 1 of a query or a key are a point of the plane. It is turned by the
    position times 10000^(-2k/H), so that the product of a query and a key depends on their
    distance alone. Values are not turned (`rotary_value` false in RoFormer's files).
    """

    def __init__(self, config, max_seq_length=None, **kwargs):
        """Arguments as for `Positions`.

        Raises:
          UserError: heads of an odd size, whose columns are no pairs.
        """
        super().__init__(config, max_seq_length, **kwargs)
        if config.head_size % 2:
            raise UserError(
                f"rotary positions turn pairs of columns, and a head has {config.head_size} "
                "(hidden_size / num_attention_heads); choose them so that this is even"
            )

    def build(self, input_shape=None):
        frequency = 10000.0 ** (-np.arange(0, self.config.head_size, 2) / self.config.head_size)
        angles = [np.arange(_BASE)[:, None] * unit * frequency for unit in (_BASE, 1)]
        self._sines = [np.sin(angle).astype("float32") for angle in angles]
        self._cosines = [np.cos(angle).astype("float32") for angle in angles]
        self.built = True

    def between(self, query_positions, key_positions):
        """Returns `Rotation`; positions are below 2^20."""
        of_query = self._angles(query_positions)
        same = key_positions is query_positions
        return Rotation(of_query, of_query if same else self._angles(key_positions))

    def of_beams(self, query_positions, source_positions, target_positions, beams):
        """As of `Positions`; the keys that are turned are those of the queries' places."""
        positions = ops.repeat(query_positions, beams, axis=-1)
        return self.between(positions, positions)

    def _angles(self, positions):
        """Returns cosine and sine of each position's angles, [..., T, H/2].

        A position times a frequency in float32 is off by 1e-4 at a thousand. So both are from
        tables that were computed in float64, put together as those of the sum of two angles.
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
    """Queries and keys turned by their positions.

    Attributes:
      of_query: cosine and sine of the angles, each [T, H/2] or [B, T, H/2].
      of_key: the same of the S keys.
    """

    of_query: tuple
    of_key: tuple

    def turned(self, query, key):
        """As of `AttentionPositions`."""
        return _turned(query, *self.of_query), _turned(key, *self.of_key)


def _turned(states, cos, sin):
    """Returns states [B, N, K, H] with each pair of columns turned by the last K angles."""
    count = ops.shape(states)[2]
    cos, sin = (part[..., -count:, :] for part in (cos, sin))
    if len(cos.shape) == 3:
        cos, sin = cos[:, None], sin[:, None]
    shape = ops.shape(states)
    pairs = ops.reshape(states, (*shape[:-1], shape[-1] // 2, 2))
    x, y = pairs[..., 0], pairs[..., 1]
    return ops.reshape(ops.stack([x * cos - y * sin, y * cos + x * sin], axis=-1), shape)
