"""The interface of position encodings, in a model and in one attention."""

import keras
from keras import ops

from nezha_tf.modeling.configured import Configured
from nezha_tf.util.errors import UserError


class AttentionPositions:
    """The effect of positions on an attention; this base class has no effect.

    All layers and heads share it. Shapes: B examples, N heads, T queries, S keys, head size H.
    """

    def turned(self, query, key):
        """Returns (query, key), rotated by their positions.

        Args:
          query: [B, N, T, H], scaled by 1/sqrt(H).
          key: [B, N, K, H], the last K of the S keys. Earlier keys come from a cache and were
            rotated before they were cached.
        """
        return query, key

    def scores(self, query):
        """Returns a term [B, N, T, S] for the scores of a query [B, N, T, H], rotated; or None."""
        return None

    def context(self, probs):
        """Returns a term [B, N, T, H] for the weighted sum of values, or None.

        `probs`, [B, N, T, S], are the attention probabilities after dropout.
        """
        return None


class Positions(Configured, keras.layers.Layer):
    """A position encoding; a subclass overrides the methods that it needs.

    Positions are integers from 0: int [T] if they are the same in all examples, else int [B, T].
    The name of an encoding in configuration files is in `config.POSITION_ENCODINGS`.

    Class attributes:
      length_key: the configuration's key with the most tokens of a sequence; None: there is no
        bound.
      is_relative: whether only distances matter, so that adding the same number to all positions
        of an example changes nothing.
      is_embedded: whether the encoding adds something to the embeddings. Its weights are then
        part of the embeddings: they are frozen with them and have their learning rate.
      added_products: number of matrix products as large as [T, S] times [S, H] that a layer
        computes for positions, in addition to the usual two of attention.
    """

    length_key = None
    is_relative = True
    is_embedded = False
    added_products = 0

    def __init__(self, config, max_seq_length=None, **kwargs):
        """`max_seq_length` bounds dynamic lengths; or it is None."""
        super().__init__(**kwargs)
        self.config = config
        self.max_seq_length = max_seq_length

    @classmethod
    def longest(cls, config):
        """Returns the most tokens of a sequence; None: there is no bound."""
        return None if cls.length_key is None else getattr(config, cls.length_key)

    @classmethod
    def check_length(cls, config, length, what, where=""):
        """Raises a `UserError` if a sequence of `length` tokens is longer than the table.

        The message names `what` has this length, a flag with its value or words, and the
        configuration file, `where`.
        """
        longest = cls.longest(config)
        if longest is not None and length > longest:
            raise UserError(
                f"{what} is past the table of {config.position_encoding} positions "
                f"({cls.length_key} {longest}{f' in {where}' if where else ''}); shorten it, or "
                "use a model with relative positions"
            )

    def build(self, input_shape=None):
        """Makes the weights, if there are any."""
        self.built = True

    def embeddings(self, position_ids, length):
        """Returns the term that is added to the embeddings if `is_embedded`, [T, E] or [B, T, E].

        Args:
          position_ids: int [T] or [B, T]; None: 0 to T-1.
          length: T, an int, or a tensor if it is dynamic.
        """
        raise NotImplementedError(f"{type(self).__name__} has is_embedded, but no embeddings()")

    def between(self, query_positions, key_positions):
        """Returns the `AttentionPositions` for queries and keys at any positions.

        These are int [T] or [B, T], and int [S] or [B, S], where the cached keys come first.
        """
        return AttentionPositions()

    def of_sequence(self, length):
        """Returns the `AttentionPositions` for the positions 0 to T-1 as queries and keys.

        The length T is an int, or a tensor if it is dynamic.
        """
        positions = ops.arange(length, dtype="int32")
        return self.between(positions, positions)

    def of_beams(self, query_positions, source_positions, target_positions, beams):
        """Returns the `AttentionPositions` for a step of decoding.

        Each place of the target has a token for each beam. The queries, and the keys after those of
        the source, are in the order (place, beam).

        Args:
          query_positions: int [Q] or [B, Q], the position of each query place.
          source_positions: int [S] or [B, S].
          target_positions: int [P] or [B, P], of the cached places, then of the query places.
          beams: int, number of tokens at a place.
        """
        of_target = ops.repeat(target_positions, beams, axis=-1)
        return self.between(
            ops.repeat(query_positions, beams, axis=-1),
            ops.concatenate([source_positions, of_target], axis=-1),
        )

    def distance_tables(self):
        """Returns {title: table [2m+1, H] of the distances -m to m}; {} if there is no table."""
        return {}
