"""Relative positions in attention: NEZHA's sinusoids, or learned tables."""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from nezha_tf.modeling import layers


def sinusoid_table(max_relative_position, depth):
    """Returns NEZHA's untrained table of relative positions.

    The sinusoid is taken of the table's index (0 to 2 * max_relative_position), not of the
    signed distance, as NEZHA's `_generate_relative_positions_embeddings` has it: stored models
    fit only this table. Even columns hold the sine, odd ones the cosine, at the frequency
    10000^(-2k/depth) (NEZHA arXiv 1909.00204 §3.1); of an odd depth the last column is zero.

    Returns:
      float32 NumPy array [2 * max_relative_position + 1, depth].
    """
    index = np.arange(2 * max_relative_position + 1)[:, None]
    pairs = depth // 2
    angle = index * 10000.0 ** (-2 * np.arange(pairs) / depth)
    table = np.zeros((len(index), depth), "float32")
    table[:, 0 : 2 * pairs : 2] = np.sin(angle)
    table[:, 1 : 2 * pairs : 2] = np.cos(angle)
    return table


class RelativePosition(keras.layers.Layer):
    """Embeddings of the distance between a query and a key, for all layers and heads at once.

    `functional_relative` has one untrained table for keys and values (NEZHA §3.1).
    `learned_relative` trains one for the keys and one for the values (Shaw et al., arXiv
    1803.02155 §3.2); all layers share them.
    """

    def __init__(self, config, max_seq_length=None, **kwargs):
        """Args:
        config: a `NezhaConfig`.
        max_seq_length: bound on the lengths that are known only when the graph runs, or None.
        **kwargs: as for any layer.
        """
        super().__init__(**kwargs)
        self.config = config
        self.max_seq_length = max_seq_length

    def build(self, input_shape=None):
        config = self.config
        shape = (2 * config.max_relative_position + 1, config.head_size)
        if config.position_encoding == "learned_relative":
            make = {"shape": shape, "initializer": layers.initializer(config)}
            self.tables = [self.add_weight(name=name, **make) for name in ("keys", "values")]
        else:
            self.tables = [sinusoid_table(config.max_relative_position, config.head_size)]
        self.built = True

    def call(self, query_positions, key_positions):
        """Looks up the embedding of each distance, whatever the positions are.

        Args:
          query_positions: int [T].
          key_positions: int [S].

        Returns:
          `PairwisePositions`.
        """
        bound = self.config.max_relative_position
        distance = key_positions[None, :] - query_positions[:, None]
        index = ops.clip(distance, -bound, bound) + bound
        keys, values = self._tables()
        return PairwisePositions(ops.take(keys, index, axis=0), ops.take(values, index, axis=0))

    def of_sequence(self, length):
        """Returns the positions of queries and keys that are the pieces 0 to T-1.

        Args:
          length: T, an int, or a tensor where it is known when the graph runs only.

        Returns:
          `PairwisePositions` where there are no more pieces than distances: as much arithmetic,
          and less to move. `SequencePositions` for longer ones.
        """
        keys, values = self._tables()
        longest = length if isinstance(length, int) else self.max_seq_length
        if longest is not None and longest <= keys.shape[0]:
            positions = ops.arange(length, dtype="int32")
            return self(positions, positions)
        return SequencePositions(keys, values)

    def _tables(self):
        found = [ops.cast(table, self.compute_dtype) for table in self.tables]
        return found[0], found[-1]


class PairwisePositions(NamedTuple):
    """Embeddings of each pair of a query and a key, for queries and keys at any positions.

    Attributes:
      keys: [T, S, H].
      values: [T, S, H].
    """

    keys: object
    values: object

    def scores(self, query):
        """Returns query [B, N, T, H] times the keys, as [B, N, T, S]."""
        return ops.einsum("bnth,tsh->bnts", query, self.keys)

    def context(self, probs):
        """Returns probs [B, N, T, S] times the values, as [B, N, T, H]."""
        return ops.einsum("bnts,tsh->bnth", probs, self.values)


class BeamPositions(NamedTuple):
    """Embeddings of pairs in decoding, where a place of the target holds a piece of each beam.

    Queries lie in the order (place, beam), and so do the keys after the S of the source. A pair's
    embedding does not depend on the beams, so it is held once for all of them.

    Attributes:
      source: `PairwisePositions` of the Q places of queries and the S of the source.
      target: `PairwisePositions` of the Q places of queries and the P of the other keys.
    """

    source: PairwisePositions
    target: PairwisePositions

    def scores(self, query):
        """Returns query [B, N, Q * beams, H] times the keys: [B, N, Q * beams, S + P * beams]."""
        batch, heads, queries, size = ops.shape(query)
        places = ops.shape(self.source.keys)[0]
        beams = queries // places
        query = ops.reshape(query, (batch, heads, places, beams, size))
        parts = [ops.einsum("bnqkh,qsh->bnqks", query, keys) for keys, _ in self]
        scores = ops.concatenate([parts[0], ops.repeat(parts[1], beams, axis=-1)], axis=-1)
        return ops.reshape(scores, (batch, heads, queries, ops.shape(scores)[-1]))

    def context(self, probs):
        """Returns probs [B, N, Q * beams, S + P * beams] times the values."""
        batch, heads, queries, _ = ops.shape(probs)
        places, length, size = ops.shape(self.source.values)
        beams = queries // places
        probs = ops.reshape(probs, (batch, heads, places, beams, ops.shape(probs)[-1]))
        source, target = probs[..., :length], probs[..., length:]
        by_place = ops.reshape(target, (batch, heads, places, beams, -1, beams))
        context = sum(
            ops.einsum("bnqks,qsh->bnqkh", part, values)
            for part, (_, values) in zip((source, ops.sum(by_place, axis=-1)), self, strict=True)
        )
        return ops.reshape(context, (batch, heads, queries, size))


class SequencePositions(NamedTuple):
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
