"""Greedy decoding and sampling: writes one token after another."""

import math
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.generation.hypotheses import IMPOSSIBLE, Generated, append, best, length_penalty
from nezha_tf.modeling.dropout import mix


class Samples(NamedTuple):
    """The state of a search.

    Attributes:
      sequences: int32 [B, R, T].
      lengths: int32 [B, R], the number of tokens of each.
      log_probs: float32 [B, R].
      has_ended: bool [B, R].
      length: int32 [], the number of tokens of the unfinished sequences.
    """

    sequences: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    has_ended: tf.Tensor
    length: tf.Tensor


class Sampling:
    """Writes R independent sequences for each example.

    The same seed gives the same sequences, with and without XLA.
    """

    def __init__(self, options, rules, vocabulary, seeds):
        """Args:
        options: `GenerationOptions`; "greedy" takes the most probable token.
        rules: `Rules`.
        vocabulary: `Vocabulary`.
        seeds: int32 [B], the seed of each example; an example's result depends on its own only.
        """
        self._options = options
        self._rules = rules
        self._sep_id = vocabulary.sep_id
        self._pad_id = vocabulary.pad_id
        self._seeds = seeds

    def start(self, batch):
        """Returns `Samples` of empty sequences."""
        shape = (batch, self._options.num_return_sequences)
        return Samples(
            tf.fill((*shape, self._options.max_length), self._pad_id),
            tf.zeros(shape, tf.int32),
            tf.zeros(shape),
            tf.zeros(shape, tf.bool),
            tf.constant(0),
        )

    def advance(self, state, log_probs):
        """Appends a token to the unfinished sequences.

        Args:
          state: `Samples`.
          log_probs: float32 [B, R, V], log-probabilities of the next token.

        Returns:
          (`Samples`, None): unlike beam search, each sequence continues itself.
        """
        allowed = self._rules.allowed(state.sequences, state.length)
        choice = tf.where(allowed, log_probs, IMPOSSIBLE)
        if self._options.method == "greedy":
            tokens = tf.argmax(choice, axis=-1, output_type=tf.int32)
        else:
            tokens = self._draw(choice / self._options.temperature, state.length)
        gained = tf.gather(log_probs, tokens, batch_dims=2)
        tokens = tf.where(state.has_ended, self._pad_id, tokens)
        state = Samples(
            append(state.sequences, state.length, tokens),
            state.lengths + tf.cast(~state.has_ended, tf.int32),
            state.log_probs + tf.where(state.has_ended, 0.0, gained),
            tf.logical_or(state.has_ended, tokens == self._sep_id),
            state.length + 1,
        )
        return state, None

    def _draw(self, logits, step):
        """Returns tokens int32 [B, R], drawn from logits [B, R, V] with `top_k` and `top_p`."""
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
        """Returns whether all sequences have ended, bool []."""
        return tf.reduce_all(state.has_ended)

    def result(self, state):
        """Returns the `Generated` of the search."""
        scores = state.log_probs / length_penalty(state.lengths, self._options.length_penalty)
        scores, ids, lengths, log_probs = best(
            scores.shape[1], scores, state.sequences, state.lengths, state.log_probs
        )
        return Generated(ids, lengths, scores, log_probs)


def gumbel(shape, seeds, step):
    """Returns Gumbel noise: the argmax of logits plus this noise is a draw from their softmax.

    It comes from hashed indices, because TensorFlow's stateless random numbers differ in XLA.

    Args:
      shape: (R, V), static.
      seeds: int32 [B].
      step: int32 [], different for each step.

    Returns:
      float32 [B, R, V]; a row depends only on its seed and the step.
    """
    # The constants are needed because the hash maps 0 to 0, and seeds and steps are often 0.
    first = mix(tf.cast(seeds, tf.uint32) ^ 0x9E3779B9)[:, None, None]
    second = mix(first + mix(tf.cast(step, tf.uint32) ^ 0x85EBCA6B))
    index = tf.reshape(tf.range(math.prod(shape)), shape)
    bits = mix(mix(tf.cast(index, tf.uint32) ^ first) + second)
    # The smallest exponential decides the draw, and near 0 floats are fine enough for it.
    uniform = (tf.cast(bits, tf.float32) + 0.5) * 2.0**-32
    return -tf.math.log(-tf.math.log1p(-uniform))
