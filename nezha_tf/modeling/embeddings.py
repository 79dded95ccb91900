"""Input embeddings: words, segments and, for absolute encodings, positions."""

import keras
from keras import ops

from nezha_tf.modeling import layers
from nezha_tf.modeling.configured import Configured
from nezha_tf.modeling.dropout import Dropout


class Embeddings(Configured, keras.layers.Layer):
    """The sum of a token's embeddings, then a norm and dropout (BERT's modeling.py).

    They are of width E, `config.embedding_width`. With `config.maps_embeddings` a dense layer
    maps them to `hidden_size` (`embedding_hidden_mapping_in` of ALBERT's modeling.py).
    """

    def __init__(self, config, positions=None, **kwargs):
        """`positions` are the model's `Positions` if they add embeddings, else None."""
        super().__init__(**kwargs)
        self.config = config
        self.positions = positions
        self.norm = layers.norm(config, dtype=self.dtype_policy)
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=self.dtype_policy)
        self.mapping = None
        if config.maps_embeddings:
            self.mapping = layers.dense(
                config.hidden_size,
                config,
                dtype=self.dtype_policy,
                name="embedding_hidden_mapping_in",
            )

    def build(self, input_shape=None):
        config = self.config
        # Cast as a whole it would be another table, which is read and written in each step.
        self.word_embeddings = self._table("word_embeddings", config.vocab_size, autocast=False)
        self.token_type_embeddings = self._table("token_type_embeddings", config.type_vocab_size)
        if self.positions is not None:
            self.positions.build()
        embedded = (None, None, config.embedding_width)
        self.norm.build(embedded)
        if self.mapping is not None:
            self.mapping.build(embedded)
        self.built = True

    def _table(self, name, rows, autocast=True):
        return self.add_weight(
            name=name,
            shape=(rows, self.config.embedding_width),
            initializer=layers.initializer(self.config),
            autocast=autocast,
        )

    def call(
        self,
        input_ids,
        segment_ids,
        position_ids=None,
        perturbation=None,
        vectors=None,
        training=False,
        mapped=True,
    ):
        """Args:
          input_ids, segment_ids: int [B, T].
          position_ids: int [T] or [B, T], the positions of the tokens; None: 0 to T-1.
          perturbation: [B, T, E], added to the word embeddings; or None.
          vectors: [B, T, E], in place of the word embeddings; or None.
          training: whether dropout is on.
          mapped: whether the result is [B, T, hidden_size], or [B, T, E].

        Raises:
          UserError: T is larger than the table of positions.
        """
        if vectors is None:
            vectors = ops.take(self.word_embeddings, input_ids, axis=0)
        output = ops.cast(vectors, self.compute_dtype)
        # As in the original, a product with one-hot rows: its gradient is dense, and the table has
        # only a few rows.
        segments = ops.one_hot(segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype)
        if perturbation is not None:
            output = output + ops.cast(perturbation, output.dtype)
        output = output + layers.matrix_product(segments, self.token_type_embeddings)
        if self.positions is not None:
            output = output + self.positions.embeddings(position_ids, ops.shape(input_ids)[1])
        output = self.dropout(self.norm(output), training=training)
        return self.mapping(output) if mapped and self.mapping is not None else output
