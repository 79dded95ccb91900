"""An objective of another package: to predict the token before a place, from what follows it."""

import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.objective import Objective, Transform
from nezha_tf.objectives.terms import MASKED_LM

PREDICTIONS = 8
NAME = "previous_token"


class ChoosePlaces(Transform):
    """Chooses places by chance whose tokens predict the one before."""

    reads = schema.UNMASKED_FEATURES
    gives = schema.FEATURES

    def __call__(self, batch, numbers, seed):
        ids = batch["input_ids"]
        last = tf.reduce_sum(batch["input_mask"], axis=1, keepdims=True) - 1  # the [SEP]
        keys = draws.graph_keys(NAME, seed, numbers)[:, None]
        order = draws.graph_uniform(keys, tf.range(ids.shape[1], dtype=tf.int64)[None])
        # The second token is the first that has a token of the text before it.
        may_be = (tf.range(ids.shape[1]) > 1) & (tf.range(ids.shape[1]) < last)
        order = tf.where(may_be, order, 2.0)
        places = tf.argsort(order, axis=1)[:, :PREDICTIONS]
        is_there = tf.gather(may_be, places, batch_dims=1)
        places = tf.where(is_there, places, 0)
        labels = tf.gather(ids, tf.maximum(places - 1, 0), batch_dims=1)
        kept = ("input_ids", "input_mask", "segment_ids", "next_sentence_labels")
        return {
            **{name: batch[name] for name in kept},
            "masked_lm_positions": places,
            "masked_lm_ids": tf.where(is_there, labels, 0),
            "masked_lm_weights": tf.cast(is_there, tf.float32),
        }


class PreviousToken(Objective):
    reads = schema.UNMASKED_FEATURES
    model = NezhaForMaskedLM

    def transforms(self, examples):
        return (ChoosePlaces(),)

    def lengths(self, examples):
        return examples.lengths._replace(max_predictions_per_seq=PREDICTIONS)

    def ranks(self, batch):
        return attention_mask.right_to_left_ranks(batch["input_mask"])

    def terms(self, of_pairs):
        return (MASKED_LM,)
