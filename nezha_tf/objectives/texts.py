"""Operations on the texts of examples, which several objectives share.

All work in the graph, on rows of a fixed number of places that are filled from the left.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data import schema

# The features of examples in which the next token is predicted where `next_token_weights` is 1.
FEATURES = (
    *(f for f in schema.UNMASKED_FEATURES if f.name in ("input_ids", "input_mask", "segment_ids")),
    schema.Feature("next_token_weights", np.float32, "max_seq_length"),
)


class Parts(NamedTuple):
    """The lengths of the parts of examples: [CLS] A [SEP] B [SEP], or [CLS] A [SEP].

    A and B belong together only if B follows A in its document. If B is random, or the two are
    swapped, or there is no B, only A is kept.

    Attributes:
      first: int32 [B], the number of tokens of [CLS] A [SEP].
      kept: int32 [B], the number of tokens that are kept.
      is_alone: bool [B], whether only A is kept.
    """

    first: tf.Tensor
    kept: tf.Tensor
    is_alone: tf.Tensor

    @classmethod
    def of(cls, batch):
        """The batch still has the segment ids 0 and 1."""
        first = tf.reduce_sum(batch["input_mask"] * (1 - batch["segment_ids"]), axis=1)
        whole = tf.reduce_sum(batch["input_mask"], axis=1)
        is_random = tf.equal(batch["next_sentence_labels"][:, 0], 1)
        is_alone = is_random | tf.equal(first, whole)
        return cls(first, tf.where(is_alone, first, whole), is_alone)

    @property
    def shift_of_one_text(self):
        """Int32 [B], -1 where the [SEP] between A and B goes when they become one text, else 0."""
        return -tf.cast(~self.is_alone, tf.int32)


class TokenRows(NamedTuple):
    """Rows of tokens, filled from the left.

    Attributes:
      ids: int32 [B, n], 0 after the last token.
      counts: int32 [B], the number of tokens.
      starts: int32 [B, n], 1 where a word begins; None where nobody asks for it.
    """

    ids: tf.Tensor
    counts: tf.Tensor
    starts: tf.Tensor | None = None

    @property
    def is_token(self):
        """Bool [B, n], whether there is a token at a place."""
        return tf.range(tf.shape(self.ids)[1])[None] < self.counts[:, None]


def texts_of(batch):
    """Returns the `TokenRows` of A and B as one text, or of A alone, without [CLS] and [SEP]."""
    parts = Parts.of(batch)
    width = batch["input_ids"].shape[1] - 2
    places = tf.range(width)[None]
    is_second = places >= parts.first[:, None] - 2
    source = places + 1 + tf.cast(is_second, tf.int32)
    counts = parts.kept - tf.where(parts.is_alone, 2, 3)
    is_token = tf.cast(places < counts[:, None], tf.int32)
    source = tf.minimum(source, width + 1)
    ids, starts = (
        tf.gather(batch[name], source, batch_dims=1) * is_token
        for name in ("input_ids", "word_starts")
    )
    return TokenRows(ids, counts, starts)


def stretches_of(rows, most, shares):
    """Returns a stretch of at most `most` tokens of each of `TokenRows`, as `TokenRows` [B, most].

    The `shares`, float64 [B] in [0, 1), choose the place of its first token, which begins a word.
    """
    room = tf.maximum(rows.counts - most, 0)
    first = tf.cast(tf.floor(shares * tf.cast(room + 1, tf.float64)), tf.int32)
    source = first[:, None] + tf.range(most)[None]
    ids, starts = (tf.gather(values, source, batch_dims=1) for values in (rows.ids, rows.starts))
    starts = tf.concat([tf.ones_like(starts[:, :1]), starts[:, 1:]], axis=1)
    return TokenRows(ids, tf.minimum(rows.counts, most), starts)


def compacted(values, is_kept, width):
    """Moves the kept ones of values, int32 [B, n], to the left end of their row.

    Returns (int32 [B, width], 0 in unused places; int32 [B], the number of values). Values that do
    not fit are dropped.
    """
    kept = tf.cast(is_kept, tf.int32)
    place = tf.cumsum(kept, axis=1) - 1
    place = tf.where(is_kept & (place < width), place, width)  # one place more, which is cut off
    number = tf.range(tf.shape(values)[0])[:, None] + tf.zeros_like(place)
    shape = (tf.shape(values)[0], width + 1)
    result = tf.scatter_nd(tf.stack([number, place], axis=-1), values * kept, shape)[:, :width]
    counts = tf.minimum(tf.reduce_sum(kept, axis=1), width)
    return tf.ensure_shape(result, (None, width)), counts


def joined(parts, width):
    """Returns several `TokenRows` behind one another, [B, width], without their `starts`."""
    ids = tf.concat([part.ids for part in parts], axis=1)
    return TokenRows(*compacted(ids, tf.concat([part.is_token for part in parts], axis=1), width))


def single(token, like):
    """Returns `TokenRows` [B, 1] of one token, as many rows as the `TokenRows` `like` have."""
    ids = tf.fill(tf.stack([tf.shape(like.ids)[0], 1]), token)
    return TokenRows(ids, tf.ones_like(like.counts))


def next_token_weights(first, counts, width):
    """Returns float32 [B, width]: 1 at the places whose next token is predicted.

    These are the places from `first`, int32 [B] or int, on. Of int32 [B] tokens, `counts`, the last
    one predicts nothing.
    """
    places = tf.range(width)[None]
    first = tf.reshape(tf.cast(first, tf.int32), (-1, 1))
    return tf.cast((places >= first) & (places < counts[:, None] - 1), tf.float32)


def smallest(keys, is_candidate, count):
    """Returns bool [B, n], whether a key is one of the `count` smallest of its row's candidates.

    Keys are float64 [B, n] below 2, and `count` is int32 [B].
    """
    order = tf.argsort(tf.where(is_candidate, keys, 2.0), axis=1)
    return is_candidate & (tf.argsort(order, axis=1) < count[:, None])


def replaced(ids, places, tokens):
    """Returns ids, int32 [B, T], with tokens, int32 [B, P], at places, int32 [B, P]."""
    rows = tf.broadcast_to(tf.range(tf.shape(places)[0])[:, None], tf.shape(places))
    return tf.tensor_scatter_nd_update(ids, tf.stack([rows, places], axis=-1), tokens)


def moved(input_ids, place, shift, parts):
    """Removes the token at a place (shift -1), inserts [SEP] there (1), or does nothing (0).

    `place` and `shift` are int32 [B]; the result is (input_ids, input_mask), int32 [B, T].
    """
    length = tf.shape(input_ids)[1]
    places, place, shift = tf.range(length)[None], place[:, None], shift[:, None]
    source = places - tf.where(places >= place, shift, 0)
    separator = parts.first[:, None] - 1
    source = tf.where((places == place) & (shift > 0), separator, source)
    ids = tf.gather(input_ids, tf.clip_by_value(source, 0, length - 1), batch_dims=1)
    input_mask = tf.cast(places < parts.kept[:, None] + shift, tf.int32)
    return ids * input_mask, input_mask
