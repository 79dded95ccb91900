"""MASS (arXiv 1905.02450): the target is a masked fragment of the source."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws
from nezha_tf.objectives.policies import replacements
from nezha_tf.objectives.text_to_text import SPECIAL_TOKENS, Corruption, drawn_below
from nezha_tf.objectives.texts import TokenRows, compacted


class Fragment(Corruption):
    """The target is a fragment of half the text; in the source most of it is [MASK].

    MASS §3.1 as its `restricted_mask_sent` draws: the fragment is at the start of the text in 20 %
    of the cases, at the end in 20 %, else anywhere. Of its tokens in the source, 80 % are [MASK],
    10 % random tokens and 10 % themselves. Unlike there, the target has the positions after the
    source, it sees the source's [MASK]s too, and a [SEP] ends it.
    """

    name = "mass"
    share = 0.5

    def fits(self, counts):
        return counts + np.rint(counts * self.share) + SPECIAL_TOKENS <= self.max_seq_length

    def corrupted(self, rows, keys):
        size = tf.cast(tf.round(tf.cast(rows.counts, tf.float32) * self.share), tf.int32)
        last = rows.counts - size
        first = drawn_below(draws.graph_uniform(keys, 0), last + 1)
        share = draws.graph_uniform(keys, 1)
        first = tf.where(share >= 0.8, 0, tf.where(share >= 0.6, last, first))
        places = tf.range(rows.ids.shape[1])[None]
        is_there = (places >= first[:, None]) & (places < (first + size)[:, None])
        source = tf.where(is_there, self._replaced(rows.ids, keys), rows.ids)
        target = compacted(rows.ids, is_there, rows.ids.shape[1])
        return TokenRows(source, rows.counts), TokenRows(*target)

    def _replaced(self, ids, keys):
        counters = tf.range(ids.shape[1], dtype=tf.int64)[None]
        own = [draws.graph_bits(keys, number)[:, None] for number in (2, 3)]
        shares = draws.graph_uniform(own[0], counters)
        random_ids = draws.graph_integers(own[1], counters, len(self.vocabulary))
        return replacements(ids, shares, random_ids, self.vocabulary.mask_id, tf.where)
