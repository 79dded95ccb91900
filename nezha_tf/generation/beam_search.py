"""Beam search with length penalty for a batch of examples."""

from typing import NamedTuple

import tensorflow as tf
from keras import ops

from nezha_tf.generation.hypotheses import IMPOSSIBLE, Generated, append, best, length_penalty


class Beams(NamedTuple):
    """The state of a search.

    Attributes:
      sequences: int32 [B, K, T], the unfinished hypotheses, best first.
      log_probs: float32 [B, K], their log-probabilities.
      length: int32 [], the number of tokens written so far.
      ended: `Generated` with the K best finished hypotheses.
    """

    sequences: tf.Tensor
    log_probs: tf.Tensor
    length: tf.Tensor
    ended: Generated


class BeamSearch:
    """Extends the K best hypotheses of each example until they cannot improve the result.

    A hypothesis ends with a [SEP] that is among the K most probable steps. A hypothesis that has
    not ended at the maximum length counts as it is. The search stops early only if no unfinished
    hypothesis could reach the scores of the finished ones, even with no further loss of
    probability.
    """

    def __init__(self, options, rules, vocabulary):
        """Args:
        options: `GenerationOptions`.
        rules: `Rules`.
        vocabulary: `Vocabulary`.
        """
        self._options = options
        self._rules = rules
        self._sep_id = vocabulary.sep_id
        self._pad_id = vocabulary.pad_id

    def start(self, batch):
        """Returns `Beams` with an empty hypothesis and K - 1 impossible ones for each example."""
        shape = (batch, self._options.beam_size)
        sequences = tf.fill((*shape, self._options.max_length), self._pad_id)
        none = tf.fill(shape, IMPOSSIBLE)
        first = tf.where(tf.range(shape[1]) == 0, 0.0, none)
        ended = Generated(sequences, tf.zeros(shape, tf.int32), none, none)
        return Beams(sequences, first, tf.constant(0), ended)

    def advance(self, state, log_probs):
        """Appends a token.

        Args:
          state: `Beams`.
          log_probs: float32 [B, K, V], log-probabilities of the next token.

        Returns:
          (`Beams`, parents int32 [B, K]: the old hypothesis that each new one continues).
        """
        batch, beams, vocab_size = ops.shape(log_probs)
        allowed = self._rules.allowed(state.sequences, state.length)
        totals = state.log_probs[..., None] + tf.where(allowed, log_probs, IMPOSSIBLE)
        totals = tf.reshape(totals, (batch, beams * vocab_size))
        # At most one token per hypothesis ends it, so at least K of 2K candidates are unfinished.
        totals, index = tf.math.top_k(totals, 2 * beams)
        parents, tokens = index // vocab_size, index % vocab_size
        sequences = tf.gather(state.sequences, parents, batch_dims=1)
        sequences = append(sequences, state.length, tokens)
        is_end = tokens == self._sep_id
        # The result of top_k is not sliced: XLA would then sort all values.
        is_likely = tf.range(2 * beams) < beams
        ended = self._ended(state, sequences, totals, tf.logical_and(is_end, is_likely))
        totals, sequences, parents = best(
            beams, tf.where(is_end, IMPOSSIBLE, totals), sequences, parents
        )
        return Beams(sequences, totals, state.length + 1, ended), parents

    def _ended(self, state, sequences, log_probs, is_new):
        """Returns the best of the finished hypotheses and those that finish now."""
        length = state.length + 1
        scores = log_probs / length_penalty(length, self._options.length_penalty)
        new = Generated(
            sequences,
            tf.fill(ops.shape(scores), length),
            tf.where(is_new, scores, IMPOSSIBLE),
            log_probs,
        )
        return _best_of(self._options.beam_size, state.ended, new)

    def is_done(self, state):
        """Returns whether no unfinished hypothesis can be among the best, bool []."""
        alpha = self._options.length_penalty
        penalties = [
            length_penalty(length, alpha) for length in (state.length, self._options.max_length)
        ]
        reachable = state.log_probs[:, 0] / tf.maximum(*penalties)
        worst = state.ended.scores[:, self._options.num_return_sequences - 1]
        return tf.reduce_all(worst >= reachable)

    def result(self, state):
        """Returns the `Generated` of the search."""
        options = self._options
        scores = state.log_probs / length_penalty(state.length, options.length_penalty)
        is_cut_off = state.length == options.max_length
        cut_off = Generated(
            state.sequences,
            tf.fill(ops.shape(scores), state.length),
            tf.where(is_cut_off, scores, IMPOSSIBLE),
            state.log_probs,
        )
        found = _best_of(options.num_return_sequences, state.ended, cut_off)
        exists = found.scores > IMPOSSIBLE
        return Generated(
            tf.where(exists[..., None], found.ids, self._pad_id),
            tf.where(exists, found.lengths, 0),
            found.scores,
            tf.where(exists, found.log_probs, IMPOSSIBLE),
        )


def _best_of(count, *groups):
    """Returns the `count` best of several `Generated`."""
    ids, lengths, scores, log_probs = (
        tf.concat(parts, axis=1) for parts in zip(*groups, strict=True)
    )
    scores, ids, lengths, log_probs = best(count, scores, ids, lengths, log_probs)
    return Generated(ids, lengths, scores, log_probs)
