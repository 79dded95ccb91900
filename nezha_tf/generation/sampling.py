"""One piece after the other: the likeliest, or one by chance."""

import math
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.generation.hypotheses import IMPOSSIBLE, Generated, append, best, length_penalty
from nezha_tf.modeling.dropout import mix


class Samples(NamedTuple):
    """The state of a search.

    Attributes:
      sequences: int32 [B, R, T].
      lengths: int32 [B, R], pieces of each.
      log_probs: float32 [B, R].
      has_ended: bool [B, R].
      length: int32 [], pieces of those that have not ended.
    """

    sequences: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    has_ended: tf.Tensor
    length: tf.Tensor


class Sampling:
    """Writes R sequences for each example, each by itself.

    The same seed gives the same sequences, compiled or not.
    """

    def __init__(self, options, rules, vocabulary, seeds):
        """Args:
        options: `GenerationOptions`; "greedy" takes the likeliest piece.
        rules: `Rules`.
        vocabulary: `Vocabulary`.
        seeds: int32 [B], of each example: what is written for it does not depend on the others.
        """
        self._options = options
        self._rules = rules
        self._sep_id = vocabulary.sep_id
        self._pad_id = vocabulary.pad_id
        self._seeds = seeds

    def start(self, batch):
        """Returns empty sequences."""
        shape = (batch, self._options.num_return_sequences)
        return Samples(
            tf.fill((*shape, self._options.max_length), self._pad_id),
            tf.zeros(shape, tf.int32),
            tf.zeros(shape),
            tf.zeros(shape, tf.bool),
            tf.constant(0),
        )

    def advance(self, state, log_probs):
        """Appends a piece to what has not ended.

        Args:
          state: `Samples`.
          log_probs: float32 [B, R, V], of the next piece.

        Returns:
          `Samples`; None, as each sequence goes on from itself.
        """
        allowed = self._rules.allowed(state.sequences, state.length)
        choice = tf.where(allowed, log_probs, IMPOSSIBLE)
        if self._options.method == "greedy":
            pieces = tf.argmax(choice, axis=-1, output_type=tf.int32)
        else:
            pieces = self._draw(choice / self._options.temperature, state.length)
        gained = tf.gather(log_probs, pieces, batch_dims=2)
        pieces = tf.where(state.has_ended, self._pad_id, pieces)
        state = Samples(
            append(state.sequences, state.length, pieces),
            state.lengths + tf.cast(~state.has_ended, tf.int32),
            state.log_probs + tf.where(state.has_ended, 0.0, gained),
            tf.logical_or(state.has_ended, pieces == self._sep_id),
            state.length + 1,
        )
        return state, None

    def _draw(self, logits, step):
        """Draws a piece from each of the distributions [B, R, V], cut as the options say."""
        options = self._options
        ids = None
        if options.top_k or options.top_p < 1:
            vocab_size = logits.shape[-1]
            logits, ids = tf.math.top_k(logits, min(options.top_k or vocab_size, vocab_size))
        if options.top_p < 1:
            before = tf.cumsum(tf.nn.softmax(logits), axis=-1, exclusive=True)
            logits = tf.where(before < options.top_p, logits, IMPOSSIBLE)
        drawn = tf.argmax(logits + gumbel(logits.shape[1:], self._seeds, step), -1, tf.int32)
        return drawn if ids is None else tf.gather(ids, drawn, batch_dims=2)

    def is_done(self, state):
        """Tells whether all sequences have ended (bool [])."""
        return tf.reduce_all(state.has_ended)

    def result(self, state):
        """Returns the `Generated` of the search."""
        scores = state.log_probs / length_penalty(state.lengths, self._options.length_penalty)
        scores, ids, lengths, log_probs = best(
            scores.shape[1], scores, state.sequences, state.lengths, state.log_probs
        )
        return Generated(ids, lengths, scores, log_probs)


def gumbel(shape, seeds, step):
    """Returns Gumbel noise, float32: the largest of logits and it is a draw from their softmax.

    Of hashed indices, as TensorFlow's own stateless numbers are not the same in XLA.

    Args:
      shape: (R, V), static.
      seeds: int32 [B].
      step: int32 []; another one for each step.

    Returns:
      float32 [B, R, V]; a row depends on its seed and the step alone.
    """
    # The hash leaves zero as it is, and a first seed and a first step often are zero.
    first = mix(tf.cast(seeds, tf.uint32) ^ 0x9E3779B9)[:, None, None]
    second = mix(first + mix(tf.cast(step, tf.uint32) ^ 0x85EBCA6B))
    index = tf.reshape(tf.range(math.prod(shape)), shape)
    bits = mix(mix(tf.cast(index, tf.uint32) ^ first) + second)
    # Near zero a float is fine enough for what decides: the smallest of the exponentials.
    uniform = (tf.cast(bits, tf.float32) + 0.5) * 2.0**-32
    return -tf.math.log(-tf.math.log1p(-uniform))
