"""The causal language model (GPT, NEZHA-Gen): each token of a text predicts the next one."""

import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import schema
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives import texts
from nezha_tf.objectives.objective import NextTokenObjective, Transform, Use


class NextTokens(Transform):
    """Joins a pair into one text, [CLS] A B [SEP], whose tokens each predict the next one."""

    reads = schema.UNMASKED_FEATURES
    gives = texts.FEATURES

    def __init__(self, segment_id):
        self._segment_id = segment_id

    def __call__(self, batch, numbers, seed):
        parts = texts.Parts.of(batch)
        ids, input_mask = texts.moved(
            batch["input_ids"], parts.first - 1, parts.shift_of_one_text, parts
        )
        counts = tf.reduce_sum(input_mask, axis=1)
        made = {
            "input_ids": ids,
            "input_mask": input_mask,
            "segment_ids": self._segment_id * input_mask,
            "next_token_weights": texts.next_token_weights(0, counts, ids.shape[1]),
        }
        if schema.TEXT_IDS.name in batch:  # The end of a packed text predicts nothing, too.
            text_ids = batch[schema.TEXT_IDS.name]
            goes_on = tf.equal(text_ids, tf.roll(text_ids, -1, axis=1))
            made["next_token_weights"] *= tf.cast(goes_on, tf.float32)
            made[schema.TEXT_IDS.name] = text_ids
        return made


class Causal(NextTokenObjective):
    """Each token of a text predicts the next one and sees what is left of it."""

    has_memory = has_packed_texts = True
    segment_ids = SEGMENT_IDS["left_to_right"]
    uses = (Use("left_to_right", segment_ids, "shift"),)
    shown_as = "left_to_right"

    def transforms(self, examples):
        return (NextTokens(self.segment_ids[0]),)

    def ranks(self, batch):
        return attention_mask.left_to_right_ranks(batch["input_mask"])
