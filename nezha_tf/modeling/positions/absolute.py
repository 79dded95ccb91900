"""Absolute positions: rows of a trained table are added to the embeddings of tokens."""

from keras import ops

from nezha_tf.modeling import layers
from nezha_tf.modeling.positions.base import Positions


class AbsolutePositions(Positions):
    """BERT's positions (`embedding_postprocessor` of its modeling.py)."""

    length_key = "max_position_embeddings"
    is_relative = False
    is_embedded = True

    def build(self, input_shape=None):
        self.position_embeddings = self.add_weight(
            name="position_embeddings",
            shape=(self.config.max_position_embeddings, self.config.embedding_width),
            initializer=layers.initializer(self.config),
        )
        self.built = True

    def embeddings(self, position_ids, length):
        """Returns rows of the table, [T, E] or [B, T, E].

        A `UserError` says if T is larger than the table. If T is dynamic, adding the rows fails in
        the graph instead. The caller must check `position_ids`.
        """
        if position_ids is not None:
            return ops.take(self.position_embeddings, position_ids, axis=0)
        if isinstance(length, int):
            self.check_length(self.config, length, f"a sequence of {length} tokens")
        return self.position_embeddings[:length]
