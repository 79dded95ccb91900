"""Turns masked pairs into single texts, or into sources and targets, for UniLM's objectives.

A pair is [CLS] A [SEP] B [SEP]. A and B are used together only if B follows A in its document. If B
is random, only A is kept, and the predictions in B are dropped.
"""

import tensorflow as tf

from nezha_tf.data import schema
from nezha_tf.objectives import texts
from nezha_tf.objectives.texts import Parts


class OneText:
    """Joins a pair into one text, [CLS] A B [SEP]. A `Transform`."""

    reads = gives = schema.FEATURES
    at_once = 1

    def __init__(self, segment_id):
        """Args:
        segment_id: the segment id of every token.
        """
        self._segment_id = segment_id

    def __call__(self, batch, numbers, seed):
        parts = Parts.of(batch)
        ids, input_mask = _one_text(batch, parts)
        shift = _shift_of_one_text(parts)
        predictions = _moved_predictions(batch, parts.first - 1, shift, parts)
        segment_ids = self._segment_id * input_mask
        inputs = {"input_ids": ids, "input_mask": input_mask, "segment_ids": segment_ids}
        return {**batch, **inputs, **predictions}

    def fault_of(self, record):
        return None


class NextTokens:
    """Joins a pair into one text, [CLS] A B [SEP], whose tokens each predict the next one.

    A `Transform`.
    """

    reads = schema.UNMASKED_FEATURES
    gives = texts.FEATURES
    at_once = 1

    def __init__(self, segment_id):
        """Args:
        segment_id: the segment id of every token.
        """
        self._segment_id = segment_id

    def __call__(self, batch, numbers, seed):
        ids, input_mask = _one_text(batch, Parts.of(batch))
        counts = tf.reduce_sum(input_mask, axis=1)
        return {
            "input_ids": ids,
            "input_mask": input_mask,
            "segment_ids": self._segment_id * input_mask,
            "next_token_weights": texts.next_token_weights(0, counts, ids.shape[1]),
        }

    def fault_of(self, record):
        return None


class SourceAndTarget:
    """Takes A as the source and B as the target. A `Transform`.

    If only A is kept, it is cut into two halves with a [SEP] between them. If A fills its row, the
    [SEP] at its end is lost.
    """

    reads = gives = schema.FEATURES
    at_once = 1

    def __init__(self, segment_ids):
        """Args:
        segment_ids: (segment id of the source's tokens, segment id of the target's tokens).
        """
        self._segment_ids = segment_ids

    def __call__(self, batch, numbers, seed):
        parts = Parts.of(batch)
        shift = tf.cast(parts.is_alone, tf.int32)  # A [SEP] is inserted between the halves.
        place = tf.where(parts.is_alone, parts.first // 2, parts.first - 1)
        ids, input_mask = _moved(batch["input_ids"], place, shift, parts)
        target_start = tf.where(parts.is_alone, place + 1, parts.first)[:, None]
        is_target = tf.range(tf.shape(ids)[1])[None] >= target_start
        segment_ids = tf.where(is_target, *reversed(self._segment_ids)) * input_mask
        inputs = {"input_ids": ids, "input_mask": input_mask, "segment_ids": segment_ids}
        return {**batch, **inputs, **_moved_predictions(batch, place, shift, parts)}

    def fault_of(self, record):
        return None


def _one_text(batch, parts):
    """Returns (input_ids, input_mask), int32 [B, T], of [CLS] A B [SEP]."""
    return _moved(batch["input_ids"], parts.first - 1, _shift_of_one_text(parts), parts)


def _shift_of_one_text(parts):
    return -tf.cast(~parts.is_alone, tf.int32)  # The [SEP] between A and B is removed.


def _moved(input_ids, place, shift, parts):
    """Removes the token at a place (shift -1), inserts [SEP] there (1), or does nothing (0).

    Args:
      input_ids: int32 [B, T].
      place, shift: int32 [B].
      parts: the `Parts`.

    Returns:
      (input_ids, input_mask), int32 [B, T].
    """
    length = tf.shape(input_ids)[1]
    places, place, shift = tf.range(length)[None], place[:, None], shift[:, None]
    source = places - tf.where(places >= place, shift, 0)
    separator = parts.first[:, None] - 1
    source = tf.where((places == place) & (shift > 0), separator, source)
    moved = tf.gather(input_ids, tf.clip_by_value(source, 0, length - 1), batch_dims=1)
    input_mask = tf.cast(places < parts.kept[:, None] + shift, tf.int32)
    return moved * input_mask, input_mask


def _moved_predictions(batch, place, shift, parts):
    """Returns the predictions in the kept tokens, with their new positions, as a dict."""
    positions = batch["masked_lm_positions"]
    counts = tf.cast(positions < parts.kept[:, None], tf.float32) * batch["masked_lm_weights"]
    is_there = tf.cast(counts > 0, tf.int32)
    is_after = tf.cast(positions >= place[:, None], tf.int32)
    return {
        "masked_lm_positions": (positions + is_after * shift[:, None]) * is_there,
        "masked_lm_ids": batch["masked_lm_ids"] * is_there,
        "masked_lm_weights": counts,
    }
