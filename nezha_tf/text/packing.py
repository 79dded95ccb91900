"""Packs texts, given as ids of tokens, into a model's sequences: in a graph, or of texts in memory.

Texts are int32 RaggedTensors [B, (n)]: a row for each example.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.util.errors import UserError

PACKED_AT_ONCE = 1024


class Packed(NamedTuple):
    """Packed sequences; segment ids are those of `join`."""

    ids: tf.RaggedTensor  # int32 [B, (n)]
    segment_ids: tf.RaggedTensor  # int32 [B, (n)]
    is_cut: tf.Tensor  # bool [B], whether a text was cut


class Packing:
    """Joins tokens that all sequences have, and texts, which are cut so that the whole fits.

    `num_fixed` is the number of these tokens, `room` that of the tokens which texts have together.
    """

    def __init__(self, parts, max_seq_length, order):
        """Args:
          parts: as for `join`, with the number of each text (from 0) in place of its ids.
          max_seq_length: most tokens of a sequence.
          order: the numbers of all texts, as for `truncated`.

        Raises:
          UserError: the length leaves no room for a token of each text.
        """
        self._parts, self._order = parts, order
        self.num_fixed = sum(len(part) for part, _ in parts if isinstance(part, list))
        self.room, least = max_seq_length - self.num_fixed, self.num_fixed + len(order)
        if max_seq_length < least:
            raise UserError(
                f"--max_seq_length={max_seq_length} leaves no room for a token of each text beside "
                f"{self.num_fixed} other tokens; it must be at least {least}"
            )

    def __call__(self, *texts):
        """Returns the `Packed` of texts."""
        kept = self.cut(*texts)
        lengths = zip(texts, kept, strict=True)
        is_cut = [text.row_lengths() > short.row_lengths() for text, short in lengths]
        parts = [(p if isinstance(p, list) else kept[p], segment) for p, segment in self._parts]
        return Packed(*join(parts), tf.reduce_any(is_cut, axis=0))

    def cut(self, *texts):
        """Returns the texts, cut so that they have room."""
        kept = truncated([texts[number] for number in self._order], self.room)
        return [heads(text, kept[self._order.index(n)]) for n, text in enumerate(texts)]


def text_packing(vocabulary, max_seq_length, is_pair):
    """Returns the `Packing` of single texts, or of pairs, with special tokens as in `bert_parts`.

    Of a pair, the longer text loses its last token again and again; if both have the same length,
    the second text does (`_truncate_seq_pair` of BERT's run_classifier.py).
    """
    texts = (0, 1) if is_pair else (0,)
    return Packing(bert_parts(vocabulary, *texts), max_seq_length, texts[::-1])


def bert_parts(vocabulary, *texts):
    """Returns the parts of [CLS] a [SEP], or of [CLS] a [SEP] b [SEP] with segment id 1 for b."""
    parts = [([vocabulary.cls_id], 0)]
    for segment, text in enumerate(texts):
        parts += [(text, segment), ([vocabulary.sep_id], segment)]
    return parts


def join(parts):
    """Joins parts of sequences.

    Args:
      parts: list of (ids, segment id). The ids are texts, or a list of the same ids for all rows;
        at least one part is texts.

    Returns:
      (ids, segment ids), int32 RaggedTensors [B, (n)].
    """
    count = next(ids.nrows() for ids, _ in parts if not isinstance(ids, list))
    values, starts, lengths, before = [], [], [], tf.constant(0, tf.int64)
    for ids, _ in parts:
        if isinstance(ids, list):
            values.append(tf.constant(ids, tf.int32))
            starts.append(tf.fill([count], before))
            lengths.append(tf.fill([count], tf.constant(len(ids), tf.int64)))
        else:
            values.append(ids.values)
            starts.append(ids.row_starts() + before)
            lengths.append(ids.row_lengths())
        before += tf.size(values[-1], tf.int64)
    lengths = tf.stack(lengths, axis=1)
    starts, flat = tf.reshape(tf.stack(starts, axis=1), [-1]), tf.reshape(lengths, [-1])
    places = tf.ragged.range(starts, starts + flat).values
    segments = tf.tile(tf.constant([segment for _, segment in parts]), [count])
    joined = tf.RaggedTensor.from_row_lengths(
        tf.gather(tf.concat(values, axis=0), places), tf.reduce_sum(lengths, axis=1), validate=False
    )
    return joined, joined.with_values(tf.repeat(segments, flat))


def truncated(texts, room):
    """Returns the lengths of texts after truncation to `room` tokens together, a list of int64 [B].

    This equals removing the last token of the longest text again and again; of texts of the same
    length, of the first one.
    """
    lengths = tf.stack([text.row_lengths() for text in texts], axis=1)
    # The level to which the long texts are cut; some of the later ones keep a token more.
    shorter = tf.cumsum(tf.sort(lengths, axis=1), axis=1, exclusive=True)
    levels = (room - shorter) // tf.range(len(texts), 0, -1, tf.int64)
    level = tf.reduce_max(levels, axis=1, keepdims=True)
    kept, is_cut = tf.minimum(lengths, level), tf.cast(lengths > level, tf.int64)
    spare = room - tf.reduce_sum(kept, axis=1, keepdims=True)
    rank = tf.cumsum(is_cut, axis=1, exclusive=True, reverse=True)
    return tf.unstack(kept + is_cut * tf.cast(rank < spare, tf.int64), axis=1)


def heads(ragged, lengths):
    """Returns the first entries of each row of a RaggedTensor [B, (n)], at most `lengths`, [B]."""
    # TensorFlow's slices and masks of ragged tensors make ten times as many operations.
    starts = ragged.row_starts()
    kept = tf.minimum(ragged.row_lengths(), tf.cast(lengths, starts.dtype))
    places = tf.ragged.range(starts, starts + kept)
    values = tf.gather(ragged.values, places.values)
    return tf.RaggedTensor.from_row_splits(values, places.row_splits, validate=False)


def pack_all(packing, *texts):
    """Packs texts in memory, many at a time.

    Args:
      packing: a `Packing`, or another function of texts that returns `Packed`.
      texts: for each of its texts a list of the ids of all rows, int32 arrays [n].

    Returns:
      (ids, segment ids: lists of an int32 array [n] for each row; the number of rows with a text
      that was cut).
    """
    ids, segment_ids, num_cut = [], [], 0
    for first in range(0, len(texts[0]), PACKED_AT_ONCE):
        part = slice(first, first + PACKED_AT_ONCE)
        with tf.device("/cpu:0"):
            packed = packing(*(ragged_of(text[part]) for text in texts))
        rows = rows_of(packed.ids)
        ids += rows
        if packed.segment_ids.values.numpy().any():
            segment_ids += rows_of(packed.segment_ids)
        else:  # rows share their zeros, because ChID has millions of rows
            zeros = np.zeros(max(map(len, rows)), np.int32)
            segment_ids += [zeros[: len(row)] for row in rows]
        num_cut += np.count_nonzero(packed.is_cut)
    return ids, segment_ids, num_cut


def ragged_of(rows):
    """Returns the RaggedTensor [B, (n)] of at least one array [n]."""
    lengths = list(map(len, rows))
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths, validate=False)


def rows_of(ragged):
    """Returns the rows of a RaggedTensor [B, (n)], B at least 1, as a list of arrays [n]."""
    return np.split(ragged.values.numpy(), ragged.row_splits.numpy()[1:-1])
