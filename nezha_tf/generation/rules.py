"""The rules for the next token."""

import numpy as np
import tensorflow as tf
from keras import ops

from nezha_tf.util.errors import UserError


class Rules:
    """Implements banned tokens, the minimum length, and the ban on repeated n-grams.

    If no token is allowed after a hypothesis, it ends, even before the minimum length.
    """

    def __init__(self, options, vocabulary, vocab_size):
        """Args:
          options: `GenerationOptions`.
          vocabulary: `Vocabulary`.
          vocab_size: V, rows of the model's table; rows after the vocabulary's are never written.

        Raises:
          UserError: a banned or an exempt token is not in the vocabulary.
        """
        for token in (*options.banned_tokens, *options.exempt_tokens):
            if token not in vocabulary:  # its id would be that of [UNK]
                raise UserError(f"{token!r}, banned or exempt, is no token of the vocabulary")
        self._min_length = options.min_length
        self._ngram_size = options.no_repeat_ngram_size
        self._is_sep = np.arange(vocab_size) == vocabulary.sep_id
        allowed = np.arange(vocab_size) < len(vocabulary)
        allowed[vocabulary.ids_of(options.banned_tokens)] = False
        self._allowed = allowed & ~self._is_sep
        self._is_exempt = np.zeros(vocab_size, bool)
        if options.exempt_tokens:
            self._is_exempt[vocabulary.ids_of(options.exempt_tokens)] = True

    def allowed(self, sequences, length):
        """Returns which tokens may come next.

        Args:
          sequences: int32 [B, K, T], unfinished hypotheses.
          length: int32 [], the number of tokens written so far.

        Returns:
          bool, broadcastable to [B, K, V].
        """
        allowed = tf.constant(self._allowed)
        if self._ngram_size:
            repeats = repeated_ngrams(sequences, length, self._ngram_size, self._is_exempt)
            allowed = tf.logical_and(allowed, tf.logical_not(repeats))
        no_other = tf.logical_not(tf.reduce_any(allowed, axis=-1, keepdims=True))
        may_end = tf.logical_or(length + 1 >= self._min_length, no_other)
        return tf.where(self._is_sep, may_end, allowed)


def repeated_ngrams(sequences, length, size, is_exempt):
    """Returns which tokens would complete an n-gram that a hypothesis already has.

    Args:
      sequences: int32 [B, K, T].
      length: int32 [], the number of tokens written so far.
      size: n.
      is_exempt: bool NumPy array [V]; n-grams with such a token do not count.

    Returns:
      bool [B, K, V].
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
        repeats = tf.logical_and(repeats, tf.logical_not(is_exempt[:, :, offset : offset + starts]))
        if offset < size - 1:
            same = sequences[:, :, offset : offset + starts] == tail[:, :, offset, None]
            repeats = tf.logical_and(repeats, same)
    rows = tf.range(batch * beams)[:, None] * vocab_size
    index = rows + tf.reshape(sequences[:, :, size - 1 :], (batch * beams, starts))
    counts = tf.zeros((batch * beams * vocab_size,), tf.int32)
    counts = tf.tensor_scatter_nd_max(
        counts, tf.reshape(index, (-1, 1)), tf.reshape(tf.cast(repeats, tf.int32), (-1,))
    )
    return tf.reshape(counts > 0, (batch, beams, vocab_size))
