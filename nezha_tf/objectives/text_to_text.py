"""Objectives that make a source and a target of a text: [CLS] source [SEP] target [SEP].

Those of T5, BART and MASS and the prefix LM differ in their `Corruption` alone.
"""

import abc

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import draws, schema
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives import texts
from nezha_tf.objectives.objective import NextTokenObjective, Transform, Use

SPECIAL_TOKENS = 3  # [CLS], [SEP], [SEP]


class Corruption(Transform):
    """Makes an example of a stretch of each text.

    The stretch is as long as the example has room for, and begins anywhere in the text. The last
    [SEP] of the source predicts the first token of the target, and so on to the final [SEP]. A text
    of one token predicts nothing.

    Attributes:
      name: what it draws is different from what corruptions of other names draw.
      options: those optional fields of `ExampleSettings` that are arguments of its constructor,
        after the vocabulary and the length.
    """

    reads = schema.UNMASKED_FEATURES
    gives = texts.FEATURES
    at_once = 256
    name: str
    options: tuple[str, ...] = ()

    def __init__(self, vocabulary, max_seq_length):
        self.vocabulary = vocabulary
        self.max_seq_length = max_seq_length

    @abc.abstractmethod
    def fits(self, counts):
        """Returns whether an example has room for the source and target of texts of any draws.

        `counts`, a NumPy array of int [n], are numbers of tokens in a text; the result is bool [n].
        """

    @abc.abstractmethod
    def corrupted(self, rows, keys):
        """Returns (source, target), both `TokenRows` with at most as many tokens as `fits` allows.

        Of the texts, `TokenRows`, those of one token do not matter; `keys`, uint64 [B], are random.
        """

    def __call__(self, batch, numbers, seed):
        keys, length = draws.graph_keys(self.name, seed, numbers), self.max_seq_length
        counts = np.arange(1, length - 1)
        most = int(counts[self.fits(counts)].max(initial=1))
        rows = texts.stretches_of(texts.texts_of(batch), most, draws.graph_uniform(keys, 0))
        source, target = self.corrupted(rows, draws.graph_bits(keys, 1))
        separator = texts.single(self.vocabulary.sep_id, rows)
        beginning = texts.single(self.vocabulary.cls_id, rows)
        whole = texts.joined((beginning, source, separator, target, separator), length)
        is_target = tf.range(length)[None] >= (source.counts + 2)[:, None]
        weights = texts.next_token_weights(source.counts + 1, whole.counts, length)
        input_mask = tf.cast(whole.is_token, tf.int32)
        return {
            "input_ids": whole.ids,
            "input_mask": input_mask,
            "segment_ids": tf.where(is_target, *reversed(SEGMENT_IDS["seq2seq"])) * input_mask,
            "next_token_weights": weights * tf.cast(rows.counts[:, None] > 1, tf.float32),
        }


class TextToText(NextTokenObjective):
    """The target's tokens are predicted from the source and what is left of them."""

    segment_ids = SEGMENT_IDS["seq2seq"]
    uses = (Use("seq2seq", segment_ids, "shift"),)
    # A picture of a text is of all of it, not of a stretch with other tokens in it.
    shown_as = "seq2seq"

    def __init__(self, corruption):
        self._corruption = corruption
        self.options = corruption.options

    def transforms(self, examples):
        vocabulary = examples.required_vocabulary(self._corruption.name)
        values = {name: getattr(examples, name) for name in self.options}
        given = {name: value for name, value in values.items() if value is not None}
        return (self._corruption(vocabulary, examples.lengths.max_seq_length, **given),)

    def ranks(self, batch):
        return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])


def drawn_below(shares, counts):
    """Returns int32 [B], numbers from 0 to counts - 1, from shares float64 [B] in [0, 1)."""
    return tf.cast(tf.floor(shares * tf.cast(counts, tf.float64)), tf.int32)
