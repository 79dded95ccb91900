"""Beam search with length penalty, for a batch at a time."""

from typing import NamedTuple

import tensorflow as tf
from keras import ops

from nezha_tf.generation.hypotheses import IMPOSSIBLE, Generated, append, best, length_penalty


class Beams(NamedTuple):
    """The state of a search.

    Attributes:
      sequences: int32 [B, K, T], hypotheses that go on, best first.
      log_probs: float32 [B, K], theirs.
      length: int32 [], how many pieces of them are written.
      ended: `Generated` of K: the best hypotheses that have ended.
    """

    sequences: tf.Tensor
    log_probs: tf.Tensor
    length: tf.Tensor
    ended: Generated


class BeamSearch:
    """Follows the K likeliest hypotheses of each example until none can be among the best.

    A hypothesis ends with a [SEP] that is among the K likeliest steps. What has not ended at the
    maximum length counts as it is. The search stops for sure losers only: where even without
    another loss of probability no hypothesis could reach the scores that there are.
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
        """Returns the empty hypothesis of each example; the other K - 1 are impossible."""
        shape = (batch, self._options.beam_size)
        sequences = tf.fill((*shape, self._options.max_length), self._pad_id)
        none = tf.fill(shape, IMPOSSIBLE)
        first = tf.where(tf.range(shape[1]) == 0, 0.0, none)
        ended = Generated(sequences, tf.zeros(shape, tf.int32), none, none)
        return Beams(sequences, first, tf.constant(0), ended)

    def advance(self, state, log_probs):
        """Appends a piece.

        Args:
          state: `Beams`.
          log_probs: float32 [B, K, V], of the next piece.

        Returns:
          `Beams`, and which of the old hypotheses each new one goes on from, int32 [B, K].
        """
        batch, beams, vocab_size = ops.shape(log_probs)
        allowed = self._rules.allowed(state.sequences, state.length)
        totals = state.log_probs[..., None] + tf.where(allowed, log_probs, IMPOSSIBLE)
        totals = tf.reshape(totals, (batch, beams * vocab_size))
        # One piece of each hypothesis ends it, so that K of 2K go on.
        totals, index = tf.math.top_k(totals, 2 * beams)
        parents, pieces = index // vocab_size, index % vocab_size
        sequences = tf.gather(state.sequences, parents, batch_dims=1)
        sequences = append(sequences, state.length, pieces)
        is_end = pieces == self._sep_id
        # Not by slices of what top_k gave: XLA would then sort the whole of it.
        is_likely = tf.range(2 * beams) < beams
        ended = self._ended(state, sequences, totals, tf.logical_and(is_end, is_likely))
        totals, sequences, parents = best(
            beams, tf.where(is_end, IMPOSSIBLE, totals), sequences, parents
        )
        return Beams(sequences, totals, state.length + 1, ended), parents

    def _ended(self, state, sequences, log_probs, is_new):
        """Returns the best of the ended hypotheses and of those that end now."""
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
        """Tells whether nothing that goes on can be among the best (bool [])."""
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
