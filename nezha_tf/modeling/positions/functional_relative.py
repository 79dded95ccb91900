"""NEZHA's relative positions: fixed sinusoids of the distance."""

import numpy as np

from nezha_tf.modeling.positions.relative import RelativePositions


class FunctionalRelativePositions(RelativePositions):
    """A fixed table of distances for keys and values (NEZHA, arXiv 1909.00204 §3.1)."""

    def build(self, input_shape=None):
        self.tables = [sinusoid_table(self.config.max_relative_position, self.config.head_size)]
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
