"""What a position encoding is, in a model and in one attention."""

import keras
from keras import ops

from nezha_tf.errors import UserError


class AttentionPositions:
    """What positions do where some queries attend to some keys; this one does nothing.

    All layers and heads share it. Shapes: B examples, N heads, T queries, S keys, H the size of a
    head.
    """

    def turned(self, query, key):
        """Turns queries and keys by their positions.

        Args:
          query: [B, N, T, H], scaled by 1/sqrt(H).
          key: [B, N, K, H], the last K of the S keys. Those before them come from a cache, and
            were turned when they were put there.

        Returns:
          The same two, turned.
        """
        return query, key

    def scores(self, query):
        """Returns what is added to the scores [B, N, T, S] before the softmax, or None.

        Args:
          query: [B, N, T, H], scaled and turned.
        """
        return None

    def context(self, probs):
        """Returns what is added to the weighted values [B, N, T, H], or None.

        Args:
          probs: [B, N, T, S], the attention probabilities after dropout.
        """
        return None


class Positions(keras.layers.Layer):
    """A position encoding; a subclass overrides what it does, and the rest does nothing.

    Positions are whole numbers from 0, int [T] where they are the same in every example, or
    int [B, T]. What a file of a configuration calls an encoding is in its row of
    `config.POSITION_ENCODINGS`.

    Class attributes:
      length_key: the key of the configuration that says how many pieces a sequence may have;
        None: any number.
      is_relative: whether distances alone count, so that all positions of an example may be
        raised by the same number.
      is_embedded: whether something is added to the embeddings. Its weights are then part of the
        embeddings: frozen with them, and with their learning rate.
      added_products: matrix products of [T, S] by [S, H], or as large, that a layer makes for
        positions, beside that of queries by keys and that of probabilities by values.
    """

    length_key = None
    is_relative = True
    is_embedded = False
    added_products = 0

    def __init__(self, config, max_seq_length=None, **kwargs):
        """Args:
        config: a `NezhaConfig`.
        max_seq_length: bound on the lengths that are known only when the graph runs, or None.
        **kwargs: as for any layer.
        """
        super().__init__(**kwargs)
        self.config = config
        self.max_seq_length = max_seq_length

    @classmethod
    def longest(cls, config):
        """Returns how many pieces a sequence may have; None: any number."""
        return None if cls.length_key is None else getattr(config, cls.length_key)

    @classmethod
    def check_length(cls, config, length, what, where=""):
        """Raises `UserError` where positions do not reach as far as a sequence goes.

        Args:
          config: a `NezhaConfig`.
          length: pieces of the sequence.
          what: for the message, what has so many: a flag with its value, or words.
          where: the file of the configuration, or "".
        """
        longest = cls.longest(config)
        if longest is not None and length > longest:
            raise UserError(
                f"{what} is past the table of {config.position_encoding} positions "
                f"({cls.length_key} {longest}{f' in {where}' if where else ''}); shorten it, or "
                "take a model with relative positions"
            )

    def build(self, input_shape=None):
        """Makes the weights, if there are any."""
        self.built = True

    def embeddings(self, position_ids, length):
        """Returns what is added to the embeddings, where `is_embedded`.

        Args:
          position_ids: int [T] or [B, T]; None: 0 to T-1.
          length: T, an int, or a tensor where it is known when the graph runs only.

        Returns:
          [T, hidden_size] or [B, T, hidden_size].
        """
        raise NotImplementedError

    def between(self, query_positions, key_positions):
        """Returns the `AttentionPositions` of queries and keys at any positions.

        Args:
          query_positions: int [T] or [B, T].
          key_positions: int [S] or [B, S]; of the S keys the cached ones come first.
        """
        return AttentionPositions()

    def of_sequence(self, length):
        """Returns the `AttentionPositions` of the pieces 0 to T-1, each a query and a key.

        Args:
          length: T, an int, or a tensor where it is known when the graph runs only.
        """
        positions = ops.arange(length, dtype="int32")
        return self.between(positions, positions)

    def of_beams(self, query_positions, source_positions, target_positions, beams):
        """Returns the `AttentionPositions` of a step of decoding.

        There each place of the target holds a piece of each beam. Queries lie in the order
        (place, beam), and so do the keys after those of the source.

        Args:
          query_positions: int [Q] or [B, Q], a position for each place of queries.
          source_positions: int [S] or [B, S].
          target_positions: int [P] or [B, P], those of the cached places and then of the queries'.
          beams: int, pieces of a place.
        """
        of_target = ops.repeat(target_positions, beams, axis=-1)
        return self.between(
            ops.repeat(query_positions, beams, axis=-1),
            ops.concatenate([source_positions, of_target], axis=-1),
        )

    def distance_tables(self):
        """Returns {title: table [2m+1, H] of the distances -m to m}; {} where there is none."""
        return {}
