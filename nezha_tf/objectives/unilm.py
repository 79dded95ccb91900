"""UniLM's objectives (arXiv 1905.03197 §2.3) beside `bert.Bidirectional`, its first one.

A pair is [CLS] A [SEP] B [SEP]. A and B are used together only if B follows A in its document. If B
is random, only A is kept, and the predictions in B are dropped.
"""

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.objective import Objective, Transform, Use
from nezha_tf.objectives.terms import MASKED_LM
from nezha_tf.objectives.texts import Parts, moved


class OneText(Transform):
    """Joins a pair into one text, [CLS] A B [SEP]."""

    reads = gives = schema.FEATURES

    def __init__(self, segment_id):
        self._segment_id = segment_id

    def __call__(self, batch, numbers, seed):
        parts = Parts.of(batch)
        place, shift = parts.first - 1, parts.shift_of_one_text
        return _moved_example(batch, place, shift, parts, self._segment_id)


class SourceAndTarget(Transform):
    """Takes A as the source and B as the target.

    If only A is kept, it is cut into two halves with a [SEP] between them. If A fills its row, the
    [SEP] at its end is lost.
    """

    reads = gives = schema.FEATURES

    def __init__(self, segment_ids):
        self._segment_ids = segment_ids

    def __call__(self, batch, numbers, seed):
        parts = Parts.of(batch)
        shift = tf.cast(parts.is_alone, tf.int32)  # A [SEP] is inserted between the halves.
        place = tf.where(parts.is_alone, parts.first // 2, parts.first - 1)
        target_start = tf.where(parts.is_alone, place + 1, parts.first)[:, None]
        is_target = tf.range(tf.shape(batch["input_ids"])[1])[None] >= target_start
        segment_ids = tf.where(is_target, *reversed(self._segment_ids))
        return _moved_example(batch, place, shift, parts, segment_ids)


def _moved_example(batch, place, shift, parts, segment_ids):
    """Returns the batch with its tokens `moved`, and the predictions in those that are kept."""
    ids, input_mask = moved(batch["input_ids"], place, shift, parts)
    positions = batch["masked_lm_positions"]
    counts = tf.cast(positions < parts.kept[:, None], tf.float32) * batch["masked_lm_weights"]
    is_there = tf.cast(counts > 0, tf.int32)
    is_after = tf.cast(positions >= place[:, None], tf.int32)
    return {
        **batch,
        "input_ids": ids,
        "input_mask": input_mask,
        "segment_ids": segment_ids * input_mask,
        "masked_lm_positions": (positions + is_after * shift[:, None]) * is_there,
        "masked_lm_ids": batch["masked_lm_ids"] * is_there,
        "masked_lm_weights": counts,
    }


class OneDirection(Objective):
    """Masked LM on one text where a token sees itself and one side; subclasses choose the side."""

    has_packed_texts = True

    def transforms(self, examples):
        return (*super().transforms(examples), OneText(self.segment_ids[0]))

    def terms(self, of_pairs):
        return (MASKED_LM,)


class LeftToRight(OneDirection):
    """A token sees the tokens left of it."""

    segment_ids = SEGMENT_IDS["left_to_right"]
    uses = (Use("left_to_right", segment_ids),)

    def ranks(self, batch):
        return attention_mask.left_to_right_ranks(batch["input_mask"])


class RightToLeft(OneDirection):
    """A token sees the tokens right of it. No program writes backwards, so this has no use."""

    segment_ids = SEGMENT_IDS["right_to_left"]

    def ranks(self, batch):
        return attention_mask.right_to_left_ranks(batch["input_mask"])


class SequenceToSequence(Objective):
    """Masked LM on source and target; the target sees the source and what is left of it."""

    segment_ids = SEGMENT_IDS["seq2seq"]
    uses = (Use("seq2seq", segment_ids),)

    def transforms(self, examples):
        return (*super().transforms(examples), SourceAndTarget(self.segment_ids))

    def ranks(self, batch):
        return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])

    def terms(self, of_pairs):
        return (MASKED_LM,)
