"""Relative positions of a whole sequence, computed for each distance instead of each pair."""

import dataclasses

from keras import ops

from nezha_tf.modeling.compiled_parts import fused
from nezha_tf.modeling.positions.base import AttentionPositions


@dataclasses.dataclass(frozen=True)
class SequencePositions(AttentionPositions):
    """Embeddings of distances, for the positions 0 to T-1 as queries and keys.

    For any number of keys, a query has one score and one sum of probabilities for each of the 2m+1
    distances. So the products are with `keys` and `values`, [2m+1, H], and no [T, T, H] is built.
    """

    keys: object
    values: object

    def scores(self, query):
        return spread_distances(ops.matmul(query, ops.transpose(self.keys)))

    def context(self, probs):
        distances = ops.shape(self.values)[0]
        return ops.matmul(collect_distances(probs, distances=distances), self.values)


@fused
def spread_distances(by_distance):
    """Returns, for each pair of positions, the entry of its distance.

    Of by_distance, [B, N, T, 2m+1], entry (i, clip(j - i, -m, m) + m) becomes entry (i, j) of
    [B, N, T, T].
    """
    distances = ops.shape(by_distance)[-1]

    # Automatic differentiation would make many more passes over [B, N, T, T].
    @ops.custom_gradient
    def spread(x):
        return _spread(x), lambda upstream: _collect(upstream, distances)

    return spread(by_distance)


@fused
def collect_distances(by_pair, *, distances):
    """Returns the sum of all pairs of each distance: the transpose of `spread_distances`.

    `distances` is 2m+1.
    """

    @ops.custom_gradient
    def collect(x):
        return _collect(x, distances), _spread

    return collect(by_pair)


def _spread(by_distance):
    length, distances = ops.shape(by_distance)[-2:]
    bound = distances // 2
    skewed = _skew(_pad_columns(by_distance, 0, length + 1))
    is_before, is_after = _is_beyond(length, bound)
    near = skewed[..., bound : bound + length]
    far = ops.where(is_before, by_distance[..., :1], by_distance[..., -1:])
    return ops.where(ops.logical_or(is_before, is_after), far, near)


def _collect(by_pair, distances):
    length = ops.shape(by_pair)[-1]
    bound = distances // 2
    near = _unskew(_pad_columns(by_pair, bound, bound + 1))[..., 1 : distances - 1]
    ends = [
        ops.sum(ops.where(beyond, by_pair, ops.zeros_like(by_pair)), axis=-1, keepdims=True)
        for beyond in _is_beyond(length, bound)
    ]
    return ops.concatenate([ends[0], near, ends[1]], axis=-1)


def _is_beyond(length, bound):
    """Returns two bool [T, T]: whether key j is at least `bound` before, or after, query i."""
    positions = ops.arange(length, dtype="int32")
    distance = positions[None, :] - positions[:, None]
    return distance <= -bound, distance >= bound


def _skew(x):
    """Moves row i of [B, N, T, W] right by i: [B, N, T, W-1]; x must end in T zero columns.

    Nothing moves in memory: the same numbers are read with rows that are shorter by one.
    """
    batch, heads, length, width = ops.shape(x)
    flat = ops.reshape(x, (batch, heads, length * width))[..., : length * (width - 1)]
    return ops.reshape(flat, (batch, heads, length, width - 1))


def _unskew(x):
    """Moves row i of [B, N, T, W-1] left by i: [B, N, T, W]; ends of other rows fill the right."""
    batch, heads, length, width = ops.shape(x)
    flat = _pad_columns(ops.reshape(x, (batch, heads, length * width)), 0, length)
    return ops.reshape(flat, (batch, heads, length, width + 1))


def _pad_columns(x, left, right):
    return ops.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[left, right]])
