"""BART's text infilling: spans of any length become one [MASK] each, sentences change places."""

import math

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws
from nezha_tf.objectives.text_to_text import SPECIAL_TOKENS, Corruption
from nezha_tf.objectives.texts import TokenRows, compacted, smallest

SENTENCE_ENDS = ("。", "！", "？", "!", "?", "…")


class Infilling(Corruption):
    """BART's corruption (arXiv 1910.13461 §2.2); the target is the whole text.

    The sentences are permuted, then spans of words become [MASK], in the order of fairseq's
    denoising_dataset.py: the lengths of spans have a Poisson distribution and are drawn until a
    share of the words is covered, the last span is cut to that, and spans begin at different words.
    What a span covers is left out, with the [MASK]s of spans that begin in it. Each span of length
    0 inserts a [MASK] anywhere. Sentences end with 。！？!?…; the [SEP] between two documents
    belongs to the sentence before it.
    """

    name = "infilling"
    options = ("noise_density", "mean_span_length")

    def __init__(self, vocabulary, max_seq_length, noise_density=0.3, mean_span_length=3.0):
        """`noise_density` is the share of words in spans, of `mean_span_length` words each."""
        super().__init__(vocabulary, max_seq_length)
        ends = [end for end in SENTENCE_ENDS if end in vocabulary]
        self._ends = tf.constant([*vocabulary.ids_of(ends), vocabulary.sep_id])
        self._density = noise_density
        self._poisson_ends = poisson_ends(mean_span_length)

    def fits(self, counts):
        # The source is rarely longer than the text; then its end is cut off.
        return 2 * counts + SPECIAL_TOKENS <= self.max_seq_length

    def corrupted(self, rows, keys):
        mask_id = self.vocabulary.mask_id
        subkeys = [draws.graph_bits(keys, number)[:, None] for number in range(4)]
        source = permuted_sentences(rows, self._ends, subkeys[0])
        lengths, inserted = self._span_lengths(source, subkeys[1])
        source = with_masks(source, lengths, mask_id, _shares(subkeys[2], source))
        source = with_inserted(source, inserted, mask_id, subkeys[3])
        return source, TokenRows(rows.ids, rows.counts)

    def _span_lengths(self, rows, keys):
        """Returns (lengths of spans, int32 [B, K], 0 if unused; numbers of empty ones, [B])."""
        words = tf.reduce_sum(rows.starts, axis=1)
        budget = tf.cast(tf.math.ceil(tf.cast(words, tf.float64) * self._density), tf.int32)
        shares = _shares(keys, rows)
        lengths = tf.searchsorted(self._poisson_ends, tf.reshape(shares, [-1]), side="right")
        lengths = tf.reshape(lengths, tf.shape(shares))
        before = tf.cumsum(lengths, axis=1, exclusive=True)
        is_drawn = before < budget[:, None]
        inserted = tf.reduce_sum(tf.cast(is_drawn & (lengths == 0), tf.int32), axis=1)
        return tf.minimum(lengths, tf.maximum(budget[:, None] - before, 0)), inserted


def poisson_ends(mean):
    """Returns the cumulative Poisson probabilities of 0, 1, 2 and so on, float64, but the last."""
    logs = [n * math.log(mean) - mean - math.lgamma(n + 1) for n in range(int(4 * mean) + 16)]
    return np.cumsum(np.exp(logs))[:-1]


def permuted_sentences(rows, ends, keys):
    """Returns texts with their sentences in a random order, as `TokenRows`.

    The tokens `ends`, int32 [n], end a sentence; the last one may have no end. The first token of a
    sentence begins a word, as it may come to stand behind another word. `keys` are uint64 [B, 1].
    """
    is_end = tf.reduce_any(rows.ids[:, :, None] == ends, axis=2) & rows.is_token
    # Several ends in a row, as in "？！", belong to one sentence.
    last = is_end & ~tf.pad(is_end, [[0, 0], [0, 1]])[:, 1:]
    sentence = tf.cumsum(tf.cast(last, tf.int64), axis=1, exclusive=True)
    order = tf.where(rows.is_token, draws.graph_uniform(keys, sentence), 2.0)
    order = tf.argsort(order, axis=1, stable=True)
    is_first = tf.pad(last, [[0, 0], [1, 0]])[:, :-1] & rows.is_token
    starts = tf.where(is_first, 1, rows.starts)
    ids, starts = (tf.gather(values, order, batch_dims=1) for values in (rows.ids, starts))
    return TokenRows(ids, rows.counts, starts)


def with_masks(rows, lengths, mask_id, shares):
    """Returns texts in which a [MASK] stands for each span of words, as `TokenRows`.

    `lengths`, int32 [B, K], are the numbers of words of the spans, 0 for no span. The spans begin
    at the words with the lowest random `shares`, float64 [B, n], the first span at the lowest.
    """
    begins = (rows.starts > 0) & rows.is_token
    word = tf.cumsum(rows.starts, axis=1) - 1
    count = tf.reduce_sum(tf.cast(lengths > 0, tf.int32), axis=1)
    is_begun = smallest(shares, begins, count)
    lengths, _ = compacted(lengths, lengths > 0, rows.ids.shape[1])
    turn = tf.argsort(tf.argsort(tf.where(begins, shares, 2.0), axis=1), axis=1)
    end = tf.where(is_begun, word + tf.gather(lengths, turn, batch_dims=1), 0)
    mine, others = word[:, :, None], word[:, None, :]
    is_covered = tf.reduce_max(tf.where(others < mine, end[:, None], 0), axis=2) > word
    is_of_begun = tf.reduce_any((others == mine) & is_begun[:, None], axis=2)
    is_kept = rows.is_token & ~is_covered & (is_begun | ~is_of_begun)
    return TokenRows(*compacted(tf.where(is_begun, mask_id, rows.ids), is_kept, rows.ids.shape[1]))


def with_inserted(rows, inserted, mask_id, keys):
    """Returns texts with as many [MASK]s, int32 [B], inserted anywhere, as `TokenRows`.

    What is too long is cut off. `keys` are uint64 [B, 1].
    """
    width = rows.ids.shape[1]
    places, total = tf.range(2 * width)[None], rows.counts + inserted
    shares = draws.graph_uniform(keys, tf.cast(places, tf.int64))
    is_new = smallest(shares, places < total[:, None], inserted)
    source = tf.cumsum(tf.cast(~is_new, tf.int32), axis=1) - 1
    ids = tf.gather(rows.ids, tf.clip_by_value(source, 0, width - 1), batch_dims=1)
    ids = tf.where(is_new, mask_id, ids) * tf.cast(places < total[:, None], tf.int32)
    return TokenRows(ids[:, :width], tf.minimum(total, width))


def _shares(keys, rows):
    return draws.graph_uniform(keys, tf.range(rows.ids.shape[1], dtype=tf.int64)[None])
