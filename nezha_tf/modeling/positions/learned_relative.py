"""Relative positions of Shaw et al.: trained tables of distances."""

from nezha_tf.modeling import layers
from nezha_tf.modeling.positions.relative import RelativePositions


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
