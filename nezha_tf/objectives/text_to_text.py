"""Makes a source and a target of a text: [CLS] source [SEP] target [SEP]."""

import abc

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.objectives.policies import replacements
from nezha_tf.objectives.texts import (
    FEATURES,
    Rows,
    compacted,
    joined,
    next_token_weights,
    single,
    stretches_of,
    texts_of,
)

SPECIAL_TOKENS = 3  # [CLS], [SEP], [SEP]


class Corruption(abc.ABC):
    """Makes sources and targets of texts.

    Attributes:
      name: what it draws is different from what corruptions of other names draw.
    """

    name: str

    @abc.abstractmethod
    def fits(self, counts, max_seq_length):
        """Returns whether an example has room for the source and target of texts of any draws.

        Args:
          counts: int [n], numbers of tokens in a text, a NumPy array.
          max_seq_length: the length T of an example.

        Returns:
          bool [n].
        """

    @abc.abstractmethod
    def __call__(self, texts, keys):
        """Returns (source, target), both `Rows` with at most as many tokens as `fits` allows.

        Args:
          texts: `Rows`; what becomes of texts of one token does not matter.
          keys: uint64 [B], random.
        """


class TextToText:
    """Makes an example of a stretch of each text. A `Transform`.

    The stretch is as long as the example has room for, and begins anywhere in the text. The last
    [SEP] of the source predicts the first token of the target, and so on to the final [SEP]. A text
    of one token predicts nothing.
    """

    reads = schema.UNMASKED_FEATURES
    gives = FEATURES
    at_once = 256

    def __init__(self, corruption, vocabulary, max_seq_length, segment_ids):
        """Args:
        corruption: a `Corruption`.
        vocabulary: the `Vocabulary` that the examples were made with.
        max_seq_length: the length T of an example.
        segment_ids: (segment id of the source's tokens, segment id of the target's tokens).
        """
        counts = np.arange(1, max_seq_length - 1)
        self._most = int(counts[corruption.fits(counts, max_seq_length)].max(initial=1))
        self._corruption = corruption
        self._cls_id, self._sep_id = vocabulary.cls_id, vocabulary.sep_id
        self._length = max_seq_length
        self._segment_ids = segment_ids

    def __call__(self, batch, numbers, seed):
        keys = draws.graph_keys(self._corruption.name, seed, numbers)
        texts = stretches_of(texts_of(batch), self._most, draws.graph_uniform(keys, 0))
        source, target = self._corruption(texts, draws.graph_bits(keys, 1))
        separator = single(self._sep_id, texts)
        parts = (single(self._cls_id, texts), source, separator, target, separator)
        rows = joined(parts, self._length)
        target_start = (source.counts + 2)[:, None]
        is_target = tf.range(self._length)[None] >= target_start
        weights = next_token_weights(source.counts + 1, rows.counts, self._length)
        input_mask = tf.cast(rows.is_token, tf.int32)
        return {
            "input_ids": rows.ids,
            "input_mask": input_mask,
            "segment_ids": tf.where(is_target, *reversed(self._segment_ids)) * input_mask,
            "next_token_weights": weights * tf.cast(texts.counts[:, None] > 1, tf.float32),
        }

    def fault_of(self, record):
        return None


class Prefix(Corruption):
    """The source is the start of the text, the target its rest; the split is drawn uniformly.

    `prefix_lm` of T5 (arXiv 1910.10683 §3.2.3); both parts have a token at least.
    """

    name = "prefix"

    def fits(self, counts, max_seq_length):
        return counts + SPECIAL_TOKENS <= max_seq_length

    def __call__(self, texts, keys):
        split = 1 + _below(draws.graph_uniform(keys, 0), texts.counts - 1)
        is_source = tf.range(texts.ids.shape[1])[None] < split[:, None]
        return tuple(
            Rows(*compacted(texts.ids, texts.is_token & part, texts.ids.shape[1]))
            for part in (is_source, ~is_source)
        )


class Fragment(Corruption):
    """The target is a fragment of half the text; in the source most of it is [MASK].

    MASS (arXiv 1905.02450 §3.1) as its `restricted_mask_sent` draws: the fragment is at the start
    of the text in 20 % of the cases, at the end in 20 %, else anywhere. Of its tokens in the
    source, 80 % are [MASK], 10 % random tokens and 10 % themselves. Unlike there, the target has
    the positions after the source, it sees the source's [MASK]s too, and a [SEP] ends it.
    """

    name = "mass"
    share = 0.5

    def __init__(self, vocabulary):
        """`vocabulary` is the `Vocabulary` of the texts."""
        self._mask_id, self._vocab_size = vocabulary.mask_id, len(vocabulary)

    def fits(self, counts, max_seq_length):
        return counts + np.rint(counts * self.share) + SPECIAL_TOKENS <= max_seq_length

    def __call__(self, texts, keys):
        size = tf.cast(tf.round(tf.cast(texts.counts, tf.float32) * self.share), tf.int32)
        last = texts.counts - size
        first = _below(draws.graph_uniform(keys, 0), last + 1)
        drawn = draws.graph_uniform(keys, 1)
        first = tf.where(drawn >= 0.8, 0, tf.where(drawn >= 0.6, last, first))
        places = tf.range(texts.ids.shape[1])[None]
        is_there = (places >= first[:, None]) & (places < (first + size)[:, None])
        source = tf.where(is_there, self._replaced(texts.ids, keys), texts.ids)
        target = compacted(texts.ids, is_there, texts.ids.shape[1])
        return Rows(source, texts.counts), Rows(*target)

    def _replaced(self, ids, keys):
        """Returns the replacements of all tokens, int32 [B, n]."""
        counters = tf.range(ids.shape[1], dtype=tf.int64)[None]
        own = [draws.graph_bits(keys, number)[:, None] for number in (2, 3)]
        shares = draws.graph_uniform(own[0], counters)
        random_ids = draws.graph_integers(own[1], counters, self._vocab_size)
        return replacements(ids, shares, random_ids, self._mask_id, tf.where)


def _below(shares, counts):
    """Returns int32 [B], numbers from 0 to counts - 1, from shares float64 [B] in [0, 1)."""
    return tf.cast(tf.floor(shares * tf.cast(counts, tf.float64)), tf.int32)
