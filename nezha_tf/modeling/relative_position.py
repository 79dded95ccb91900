"""Relative positions in attention: NEZHA's sinusoids, or learned tables."""

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

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config

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
        """Looks up the embedding of each distance.

        Args:
          query_positions: int [T].
          key_positions: int [S].

        Returns:
          (key embeddings, value embeddings), each [T, S, H] in the compute dtype.
        """
        bound = self.config.max_relative_position
        distance = key_positions[None, :] - query_positions[:, None]
        index = ops.clip(distance, -bound, bound) + bound
        found = [
            ops.take(ops.cast(table, self.compute_dtype), index, axis=0) for table in self.tables
        ]
        return found[0], found[-1]
