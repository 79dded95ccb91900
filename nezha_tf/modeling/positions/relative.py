"""Relative positions by tables: each distance has an embedding for keys and one for values."""

import dataclasses

import numpy as np
from keras import ops

from nezha_tf.modeling import layers
from nezha_tf.modeling.positions.base import AttentionPositions, Positions
from nezha_tf.modeling.positions.distances import SequencePositions


class RelativePositions(Positions):
    """Embeddings of the distance between a query and a key, the same for all layers and heads.

    A subclass makes `tables` in `build`: one table [2m+1, H], or one for keys and one for values.
    Row m + d is for the distance d (key minus query); distances beyond m
    (`max_relative_position`) use the first or last row.
    """

    # Queries times the table for keys, and probabilities times the table for values.
    added_products = 2

    def between(self, query_positions, key_positions):
        """Looks up the embedding of each distance, as `PairwisePositions`."""
        bound = self.config.max_relative_position
        distance = ops.expand_dims(key_positions, -2) - ops.expand_dims(query_positions, -1)
        index = ops.clip(distance, -bound, bound) + bound
        keys, values = self._keys_and_values()
        return PairwisePositions(ops.take(keys, index, axis=0), ops.take(values, index, axis=0))

    def of_sequence(self, length):
        """Looks up pairs for at most as many tokens as distances: less memory is moved."""
        longest = length if isinstance(length, int) else self.max_seq_length
        keys, values = self._keys_and_values()
        if longest is not None and longest <= keys.shape[0]:
            return super().of_sequence(length)
        return SequencePositions(keys, values)

    def of_beams(self, query_positions, source_positions, target_positions, beams):
        """Looks up each place once for all beams."""
        return BeamPositions(
            self.between(query_positions, source_positions),
            self.between(query_positions, target_positions),
        )

    def distance_tables(self):
        """The titles are "keys" and "values", or "" for a common table."""
        found = [ops.convert_to_numpy(table) for table in self.tables]
        titles = ("keys", "values") if len(found) > 1 else ("",)
        return dict(zip(titles, found, strict=True))

    def _keys_and_values(self):
        found = [ops.cast(table, self.compute_dtype) for table in self.tables]
        return found[0], found[-1]


class FunctionalRelativePositions(RelativePositions):
    """A fixed table of distances for keys and values (NEZHA, arXiv 1909.00204 §3.1)."""

    def build(self, input_shape=None):
        self.tables = [sinusoid_table(self.config.max_relative_position, self.config.head_size)]
        self.built = True


class LearnedRelativePositions(RelativePositions):
    """A trained table for keys and one for values (Shaw et al., arXiv 1803.02155 §3.2).

    All layers share the tables.
    """

    def build(self, input_shape=None):
        config = self.config
        shape = (2 * config.max_relative_position + 1, config.head_size)
        make = {"shape": shape, "initializer": layers.initializer(config)}
        self.tables = [self.add_weight(name=name, **make) for name in ("keys", "values")]
        self.built = True


def sinusoid_table(max_relative_position, depth):
    """Returns NEZHA's fixed table of relative positions.

    As in NEZHA's `_generate_relative_positions_embeddings`, the argument of the sinusoid is the
    table's index (0 to 2 * max_relative_position), not the signed distance; published weights fit
    only this table. Even columns are sines and odd columns cosines with the frequency
    10000^(-2k/depth) (NEZHA, arXiv 1909.00204 §3.1); if depth is odd, the last column is 0.

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


@dataclasses.dataclass(frozen=True)
class PairwisePositions(AttentionPositions):
    """Embeddings of each pair of a query and a key, for queries and keys at any positions.

    `keys` and `values` are [T, S, H], or [B, T, S, H] if positions differ between examples.
    """

    keys: object
    values: object

    def scores(self, query):
        return ops.einsum(f"bnth,{_batch(self.keys)}tsh->bnts", query, self.keys)

    def context(self, probs):
        return ops.einsum(f"bnts,{_batch(self.values)}tsh->bnth", probs, self.values)


@dataclasses.dataclass(frozen=True)
class BeamPositions(AttentionPositions):
    """Embeddings of pairs in decoding, where each target place has a token for each beam.

    The queries, and the keys after the S of the source, are in the order (place, beam). A pair's
    embedding does not depend on the beam, so it is stored once for all beams: `source` is of the Q
    query places and the S source places, `target` of the query places and the P target places.
    """

    source: PairwisePositions
    target: PairwisePositions

    def scores(self, query):
        """Returns query [B, N, Q * beams, H] times the keys: [B, N, Q * beams, S + P * beams]."""
        batch, heads, queries, size = ops.shape(query)
        places = ops.shape(self.source.keys)[-3]
        beams = queries // places
        query = ops.reshape(query, (batch, heads, places, beams, size))
        equation = f"bnqkh,{_batch(self.source.keys)}qsh->bnqks"
        parts = [ops.einsum(equation, query, part.keys) for part in (self.source, self.target)]
        scores = ops.concatenate([parts[0], ops.repeat(parts[1], beams, axis=-1)], axis=-1)
        return ops.reshape(scores, (batch, heads, queries, ops.shape(scores)[-1]))

    def context(self, probs):
        batch, heads, queries, _ = ops.shape(probs)
        places, length, size = ops.shape(self.source.values)[-3:]
        beams = queries // places
        probs = ops.reshape(probs, (batch, heads, places, beams, ops.shape(probs)[-1]))
        source, target = probs[..., :length], probs[..., length:]
        by_place = ops.reshape(target, (batch, heads, places, beams, -1, beams))
        equation = f"bnqks,{_batch(self.source.values)}qsh->bnqkh"
        context = ops.einsum(equation, source, self.source.values)
        context += ops.einsum(equation, ops.sum(by_place, axis=-1), self.target.values)
        return ops.reshape(context, (batch, heads, queries, size))


def _batch(embeddings):
    return "b" if len(embeddings.shape) == 4 else ""
