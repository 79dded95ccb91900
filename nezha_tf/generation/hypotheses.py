"""The result of a search, and functions that compare hypotheses."""

from typing import NamedTuple

import tensorflow as tf

# The score of a missing hypothesis, lower than every real score.
IMPOSSIBLE = float("-inf")


class Generated(NamedTuple):
    """The R best hypotheses of each example, best first.

    If there are fewer, the others have the score minus infinity and the length 0.

    Attributes:
      ids: int32 [B, R, T], padded on the right with [PAD].
      lengths: int32 [B, R], number of tokens in a hypothesis, with the final [SEP].
      scores: float32 [B, R], log-probability divided by length penalty.
      log_probs: float32 [B, R], natural logarithm of the probability under the model, without
        the effect of rules, temperature, top_k and top_p.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    log_probs: tf.Tensor


def length_penalty(length, alpha):
    """Returns ((5 + length) / 6)^alpha, float32."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def best(count, scores, *others):
    """Returns the `count` highest of scores [B, K], falling, and the same entries of others.

    Args:
      count: R, at most K.
      scores: [B, K].
      *others: [B, K, ...].

    Returns:
      List of [B, R, ...], the scores first.
    """
    scores, index = tf.math.top_k(scores, count)
    return [scores, *(tf.gather(other, index, batch_dims=1) for other in others)]


def append(sequences, length, tokens):
    """Returns sequences [B, K, T] with tokens [B, K] written at the place `length`."""
    is_place = tf.range(sequences.shape[-1]) == length
    return tf.where(is_place, tokens[..., None], sequences)
