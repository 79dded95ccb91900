"""Searches for targets: the rules for the next token, beam search, greedy decoding and sampling.

A search has `start`, `advance`, `is_done` (a bool [] for all examples), `result`, a `Generated`,
and `so_far`, the same before it is done; `Generator` calls them in a loop.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from nezha_tf.modeling.dropout import mix
from nezha_tf.util.errors import UserError

# The score of a missing hypothesis, lower than every real score.
IMPOSSIBLE = float("-inf")


class Generated(NamedTuple):
    """The R best hypotheses of each example, best first.

    If there are fewer, the others have the score minus infinity and the length 0.

    Attributes:
      ids: int32 [B, R, T], padded on the right with [PAD].
      lengths: int32 [B, R], number of tokens in a hypothesis, with the final [SEP].
      scores: float32 [B, R], log-probability divided by length penalty; of beam search it is the
        log-probability under the repetition penalty, by which the search has chosen.
      log_probs: float32 [B, R], natural logarithm of the probability under the model, without
        the effect of rules, repetition penalty, temperature, top_k and top_p.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    log_probs: tf.Tensor


class Rules:
    """Implements banned tokens, the minimum length, and what is done against repetition.

    If no token is allowed after a hypothesis, it ends, even before the minimum length.
    """

    def __init__(self, options, vocabulary, vocab_size):
        """The tokens after the `Vocabulary`, up to `vocab_size`, V, are never written.

        Raises:
          UserError: a banned or an exempt token is not in the vocabulary.
        """
        for token in (*options.banned_tokens, *options.exempt_tokens):
            if token not in vocabulary:  # its id would be that of [UNK]
                raise UserError(f"{token!r}, banned or exempt, is no token of the vocabulary")
        self._min_length = options.min_length
        self._repetition_penalty = options.repetition_penalty
        self._ngram_size = options.no_repeat_ngram_size
        self._is_sep = np.arange(vocab_size) == vocabulary.sep_id
        allowed = np.arange(vocab_size) < len(vocabulary)
        allowed[vocabulary.ids_of(options.banned_tokens)] = False
        self._allowed = allowed & ~self._is_sep
        exempt_ids = np.array(vocabulary.ids_of(options.exempt_tokens), int)
        self._is_exempt = np.isin(np.arange(vocab_size), exempt_ids)

    def next_log_probs(self, logits, sequences, length):
        """Returns log-probabilities of the tokens after sequences [B, K, T] of a length.

        Returns:
          (those of the model, from its logits; those to choose by, under the repetition penalty,
          minus infinity for tokens that may not follow), both float32 [B, K, V].
        """
        of_model = of_choice = tf.nn.log_softmax(logits)
        if self._repetition_penalty != 1:
            of_choice = tf.nn.log_softmax(self._penalized(logits, sequences, length))
        return of_model, tf.where(self.allowed(sequences, length), of_choice, IMPOSSIBLE)

    def _penalized(self, logits, sequences, length):
        # A repeated token is a repeated n-gram of one token.
        is_repeated = _repeated_ngrams(sequences, length, 1, np.zeros_like(self._is_exempt))
        penalty = self._repetition_penalty
        lowered = tf.where(logits > 0, logits / penalty, logits * penalty)
        return tf.where(is_repeated, lowered, logits)

    def allowed(self, sequences, length):
        """Returns which tokens may follow sequences [B, K, T] of a length: bool, like [B, K, V]."""
        allowed = tf.constant(self._allowed)
        if self._ngram_size:
            allowed &= ~_repeated_ngrams(sequences, length, self._ngram_size, self._is_exempt)
        no_other = ~tf.reduce_any(allowed, axis=-1, keepdims=True)
        may_end = (length + 1 >= self._min_length) | no_other
        return tf.where(self._is_sep, may_end, allowed)


def _repeated_ngrams(sequences, length, size, is_exempt):
    """Returns which tokens would complete an n-gram that a hypothesis already has: bool [B, K, V].

    N-grams with a token of `is_exempt`, a NumPy array [V], do not count.
    """
    batch, beams, places = ops.shape(sequences)
    vocab_size = len(is_exempt)
    if places < size:
        return tf.zeros((batch, beams, vocab_size), tf.bool)
    starts = places - size + 1
    repeats = tf.range(starts) + size <= length
    tail = tf.gather(sequences, tf.maximum(length - size + 1 + tf.range(size - 1), 0), axis=2)
    is_exempt = tf.gather(tf.constant(is_exempt), sequences)
    for offset in range(size):
        repeats &= ~is_exempt[:, :, offset : offset + starts]
        if offset < size - 1:
            repeats &= sequences[:, :, offset : offset + starts] == tail[:, :, offset, None]
    rows = tf.range(batch * beams)[:, None] * vocab_size
    index = rows + tf.reshape(sequences[:, :, size - 1 :], (batch * beams, starts))
    counts = tf.zeros((batch * beams * vocab_size,), tf.int32)
    counts = tf.tensor_scatter_nd_max(
        counts, tf.reshape(index, (-1, 1)), tf.reshape(tf.cast(repeats, tf.int32), (-1,))
    )
    return tf.reshape(counts > 0, (batch, beams, vocab_size))


class Beams(NamedTuple):
    """The state of a beam search."""

    sequences: tf.Tensor  # int32 [B, K, T], the unfinished hypotheses, best first
    totals: tf.Tensor  # float32 [B, K], their log-probabilities under the repetition penalty
    log_probs: tf.Tensor  # float32 [B, K], those under the model
    length: tf.Tensor  # int32 [], the number of tokens written so far
    ended: Generated  # the K best finished hypotheses


class BeamSearch:
    """Extends the K best hypotheses of each example until they cannot improve the result.

    A hypothesis ends with a [SEP] that is among the K most probable steps. A hypothesis that has
    not ended at the maximum length counts as it is. The search stops early only if no unfinished
    hypothesis could reach the scores of the finished ones, even with no further loss of
    probability.
    """

    def __init__(self, options, rules, vocabulary):
        self._options, self._rules = options, rules
        self._sep_id, self._pad_id = vocabulary.sep_id, vocabulary.pad_id

    def start(self, batch):
        """Returns `Beams` with an empty hypothesis and K - 1 impossible ones for each example."""
        shape = (batch, self._options.beam_size)
        sequences = tf.fill((*shape, self._options.max_length), self._pad_id)
        none = tf.fill(shape, IMPOSSIBLE)
        first = tf.where(tf.range(shape[1]) == 0, 0.0, none)
        ended = Generated(sequences, tf.zeros(shape, tf.int32), none, none)
        return Beams(sequences, first, first, tf.constant(0), ended)

    def advance(self, state, logits):
        """Appends a token to `Beams`; the logits are float32 [B, K, V].

        Returns:
          (`Beams`, parents int32 [B, K]: the old hypothesis that each new one continues).
        """
        batch, beams, vocab_size = ops.shape(logits)
        of_model, of_choice = self._rules.next_log_probs(logits, state.sequences, state.length)
        totals = tf.reshape(state.totals[..., None] + of_choice, (batch, beams * vocab_size))
        # At most one token per hypothesis ends it, so at least K of 2K candidates are unfinished.
        totals, index = tf.math.top_k(totals, 2 * beams)
        parents, tokens = index // vocab_size, index % vocab_size
        gained = tf.gather(tf.reshape(of_model, (batch, beams * vocab_size)), index, batch_dims=1)
        log_probs = tf.gather(state.log_probs, parents, batch_dims=1) + gained
        sequences = tf.gather(state.sequences, parents, batch_dims=1)
        sequences = _append(sequences, state.length, tokens)
        is_end = tokens == self._sep_id
        # The result of top_k is not sliced: XLA would then sort all values.
        is_likely = tf.range(2 * beams) < beams
        length = state.length + 1
        new = self._hypotheses(sequences, totals, log_probs, length, is_end & is_likely)
        ended = _best_of(beams, state.ended, new)
        totals, sequences, log_probs, parents = _best(
            beams, tf.where(is_end, IMPOSSIBLE, totals), sequences, log_probs, parents
        )
        return Beams(sequences, totals, log_probs, length, ended), parents

    def _hypotheses(self, sequences, totals, log_probs, length, is_one):
        """Returns sequences of one length as `Generated`; those that are none are impossible."""
        scores = totals / _length_penalty(length, self._options.length_penalty)
        lengths = tf.fill(ops.shape(scores), length)
        return Generated(sequences, lengths, tf.where(is_one, scores, IMPOSSIBLE), log_probs)

    def is_done(self, state):
        """Returns whether no unfinished hypothesis can be among the best, bool []."""
        options = self._options
        penalties = [
            _length_penalty(length, options.length_penalty)
            for length in (state.length, options.max_length)
        ]
        reachable = state.totals[:, 0] / tf.maximum(*penalties)
        worst = state.ended.scores[:, options.num_return_sequences - 1]
        return tf.reduce_all(worst >= reachable)

    def result(self, state):
        return self._best_at(state, state.length == self._options.max_length)

    def so_far(self, state):
        """Returns the result, or what it would be if the search ended here."""
        is_cut_off = state.length == self._options.max_length
        return self._best_at(state, is_cut_off | tf.logical_not(self.is_done(state)))

    def _best_at(self, state, is_cut_off):
        cut_off = self._hypotheses(
            state.sequences, state.totals, state.log_probs, state.length, is_cut_off
        )
        hypotheses = _best_of(self._options.num_return_sequences, state.ended, cut_off)
        exists = hypotheses.scores > IMPOSSIBLE
        return Generated(
            tf.where(exists[..., None], hypotheses.ids, self._pad_id),
            tf.where(exists, hypotheses.lengths, 0),
            hypotheses.scores,
            tf.where(exists, hypotheses.log_probs, IMPOSSIBLE),
        )


class Samples(NamedTuple):
    """The state of greedy decoding or sampling."""

    sequences: tf.Tensor  # int32 [B, R, T]
    lengths: tf.Tensor  # int32 [B, R], the number of tokens of each
    log_probs: tf.Tensor  # float32 [B, R]
    has_ended: tf.Tensor  # bool [B, R]
    length: tf.Tensor  # int32 [], the number of tokens of the unfinished sequences


class Sampling:
    """Writes R independent sequences for each example; "greedy" takes the most probable tokens.

    Each example has a seed, int32 [B], on which its result depends alone. The same seed gives the
    same sequences, with and without XLA.
    """

    def __init__(self, options, rules, vocabulary, seeds):
        self._options, self._rules, self._seeds = options, rules, seeds
        self._sep_id, self._pad_id = vocabulary.sep_id, vocabulary.pad_id

    def start(self, batch):
        shape = (batch, self._options.num_return_sequences)
        return Samples(
            tf.fill((*shape, self._options.max_length), self._pad_id),
            tf.zeros(shape, tf.int32),
            tf.zeros(shape),
            tf.zeros(shape, tf.bool),
            tf.constant(0),
        )

    def advance(self, state, logits):
        """Appends a token to the unfinished `Samples`; the logits are float32 [B, R, V].

        Returns:
          (`Samples`, None): unlike beam search, each sequence continues itself.
        """
        of_model, choice = self._rules.next_log_probs(logits, state.sequences, state.length)
        if self._options.method == "greedy":
            tokens = tf.argmax(choice, axis=-1, output_type=tf.int32)
        else:
            tokens = self._draw(choice / self._options.temperature, state.length)
        gained = tf.gather(of_model, tokens, batch_dims=2)
        tokens = tf.where(state.has_ended, self._pad_id, tokens)
        state = Samples(
            _append(state.sequences, state.length, tokens),
            state.lengths + tf.cast(~state.has_ended, tf.int32),
            state.log_probs + tf.where(state.has_ended, 0.0, gained),
            state.has_ended | (tokens == self._sep_id),
            state.length + 1,
        )
        return state, None

    def _draw(self, logits, step):
        """Returns tokens int32 [B, R], drawn from logits [B, R, V] with `top_k` and `top_p`."""
        options, ids = self._options, None
        if options.top_k or options.top_p < 1:
            vocab_size = logits.shape[-1]
            logits, ids = tf.math.top_k(logits, min(options.top_k or vocab_size, vocab_size))
        if options.top_p < 1:
            before = tf.cumsum(tf.nn.softmax(logits), axis=-1, exclusive=True)
            logits = tf.where(before < options.top_p, logits, IMPOSSIBLE)
        drawn = tf.argmax(logits + gumbel(logits.shape[1:], self._seeds, step), -1, tf.int32)
        return drawn if ids is None else tf.gather(ids, drawn, batch_dims=2)

    def is_done(self, state):
        return tf.reduce_all(state.has_ended)

    def result(self, state):
        scores = state.log_probs / _length_penalty(state.lengths, self._options.length_penalty)
        hypotheses = Generated(state.sequences, state.lengths, scores, state.log_probs)
        return _best_of(scores.shape[1], hypotheses)

    so_far = result


def gumbel(shape, seeds, step):
    """Returns Gumbel noise, float32 [B, R, V]: its sum with logits has the argmax of a draw.

    It comes from hashed indices, because TensorFlow's stateless random numbers differ in XLA. A row
    depends only on its seed, of int32 [B], and on the step, int32 []; the shape (R, V) is static.
    """
    # The constants are needed because the hash maps 0 to 0, and seeds and steps are often 0.
    first = mix(tf.cast(seeds, tf.uint32) ^ 0x9E3779B9)[:, None, None]
    second = mix(first + mix(tf.cast(step, tf.uint32) ^ 0x85EBCA6B))
    index = tf.reshape(tf.range(math.prod(shape)), shape)
    bits = mix(mix(tf.cast(index, tf.uint32) ^ first) + second)
    # The smallest exponential decides the draw, and near 0 floats are fine enough for it.
    uniform = (tf.cast(bits, tf.float32) + 0.5) * 2.0**-32
    return -tf.math.log(-tf.math.log1p(-uniform))


def _length_penalty(length, alpha):
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def _append(sequences, length, tokens):
    """Returns sequences [B, K, T] with tokens [B, K] written at the place `length`."""
    is_place = tf.range(sequences.shape[-1]) == length
    return tf.where(is_place, tokens[..., None], sequences)


def _best(count, scores, *others):
    """Returns the `count` highest of scores [B, K], falling, and the same entries of others."""
    scores, index = tf.math.top_k(scores, count)
    return [scores, *(tf.gather(other, index, batch_dims=1) for other in others)]


def _best_of(count, *groups):
    """Returns the `count` best of several `Generated`."""
    ids, lengths, scores, log_probs = (tf.concat(p, axis=1) for p in zip(*groups, strict=True))
    scores, ids, lengths, log_probs = _best(count, scores, ids, lengths, log_probs)
    return Generated(ids, lengths, scores, log_probs)
