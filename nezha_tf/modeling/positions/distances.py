"""Relative positions of a whole sequence, computed by distance and not by pair."""

import dataclasses

from keras import ops

from nezha_tf.modeling.positions.base import AttentionPositions


@dataclasses.dataclass(frozen=True)
class SequencePositions(AttentionPositions):
    """Embeddings of each distance, for queries and keys that are the positions 0 to T-1.

    A query has one score for each of the 2m+1 distances, however many keys there are, and one
    sum of probabilities. So the products are those of a [2m+1, H] matrix, and nothing of size
    [T, T, H] is built.

    Attributes:
      keys: [2m+1, H].
      values: [2m+1, H].
    """

    keys: object
    values: object

    def scores(self, query):
        """Returns query [B, N, T, H] times the keys, as [B, N, T, T]."""
        return spread_distances(ops.matmul(query, ops.transpose(self.keys)))

    def context(self, probs):
        """Returns probs [B, N, T, T] times the values, as [B, N, T, H]."""
        distances = ops.shape(self.values)[0]
        return ops.matmul(collect_distances(probs, distances), self.values)


def spread_distances(by_distance):
    """Gives each pair of positions the entry of its distance.

    Args:
      by_distance: [B, N, T, 2m+1].

    Returns:
      [B, N, T, T]: entry (i, j) is by_distance's entry (i, clip(j - i, -m, m) + m).
    """
    distances = ops.shape(by_distance)[-1]

    # By itself, each backend would differentiate the parts one by one, with many more passes
    # over [B, N, T, T].
    @ops.custom_gradient
    def spread(x):
        return _spread(x), lambda upstream: _collect(upstream, distances)

    return spread(by_distance)


def collect_distances(by_pair, distances):
    """Sums the pairs of positions of each distance: the transpose of `spread_distances`.

    Args:
      by_pair: [B, N, T, T].
      distances: 2m+1.

    Returns:
      [B, N, T, 2m+1]: entry (i, d) is the sum of by_pair's (i, j) with clip(j - i, -m, m) = d - m.
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
    """Returns two bool [T, T]: whether key j is `bound` or more before, or after, query i."""
    positions = ops.arange(length, dtype="int32")
    distance = positions[None, :] - positions[:, None]
    return distance <= -bound, distance >= bound


def _skew(x):
    """Moves row i of [B, N, T, W] right by i: [B, N, T, W-1], where x has T zeros at the right.

    In memory nothing moves: it is the same numbers with rows that are one shorter.
    """
    batch, heads, length, width = ops.shape(x)
    flat = ops.reshape(x, (batch, heads, length * width))[..., : length * (width - 1)]
    return ops.reshape(flat, (batch, heads, length, width - 1))


def _unskew(x):
    """Moves row i of [B, N, T, W-1] left by i: [B, N, T, W], with other rows' ends at the right."""
    batch, heads, length, width = ops.shape(x)
    flat = _pad_columns(ops.reshape(x, (batch, heads, length * width)), 0, length)
    return ops.reshape(flat, (batch, heads, length, width + 1))


def _pad_columns(x, left, right):
    return ops.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[left, right]])
