"""The prefix LM (`prefix_lm` of T5, arXiv 1910.10683 §3.2.3): a text's start, then its rest."""

import tensorflow as tf

from nezha_tf.data import draws
from nezha_tf.objectives.text_to_text import SPECIAL_TOKENS, Corruption, drawn_below
from nezha_tf.objectives.texts import TokenRows, compacted


class Prefix(Corruption):
    """The source is the start of the text, the target its rest; the split is drawn uniformly.

    Both parts have a token at least.
    """

    name = "prefix"

    def fits(self, counts):
        return counts + SPECIAL_TOKENS <= self.max_seq_length

    def corrupted(self, rows, keys):
        width = rows.ids.shape[1]
        split = 1 + drawn_below(draws.graph_uniform(keys, 0), rows.counts - 1)
        is_source = tf.range(width)[None] < split[:, None]
        return tuple(
            TokenRows(*compacted(rows.ids, rows.is_token & part, width))
            for part in (is_source, ~is_source)
        )
