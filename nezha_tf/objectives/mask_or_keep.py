"""Masks the tokens to predict or keeps them, for a generator that replaces tokens (ELECTRA)."""

import numpy as np
import tensorflow as tf

from nezha_tf.data import draws, schema
from nezha_tf.data.schema import Feature

# The share of the tokens to predict that become [MASK]; the others stay, none becomes a random
# token (`mask` of ELECTRA's pretrain_helpers.py).
MASKED_SHARE = 0.85
FEATURES = (
    *schema.FEATURES[:3],
    Feature("generator_positions", np.int64, "max_predictions_per_seq"),
    Feature("generator_ids", np.int64, "max_predictions_per_seq"),
    Feature("generator_weights", np.float32, "max_predictions_per_seq"),
)


class MaskOrKeep:
    """Draws anew which of the predicted tokens are masked. A `Transform`.

    The predictions get names of their own, because in a mixture the model's other head has no
    prediction in these examples.
    """

    reads = schema.FEATURES
    gives = FEATURES
    at_once = 1

    def __init__(self, mask_id):
        """Args:
        mask_id: the id of [MASK].
        """
        self._mask_id = mask_id

    def __call__(self, batch, numbers, seed):
        places, weights = batch["masked_lm_positions"], batch["masked_lm_weights"]
        originals, is_there = batch["masked_lm_ids"], batch["masked_lm_weights"] > 0
        keys = draws.graph_keys("mask_or_keep", seed, numbers)[:, None]
        shares = draws.graph_uniform(keys, tf.cast(places, tf.int64))
        found = tf.where(shares < MASKED_SHARE, self._mask_id, originals)
        # Unused slots are at [CLS], which stays.
        found = tf.where(is_there, found, tf.gather(batch["input_ids"], places, batch_dims=1))
        rows = tf.broadcast_to(tf.range(tf.shape(places)[0])[:, None], tf.shape(places))
        ids = tf.tensor_scatter_nd_update(
            batch["input_ids"], tf.stack([rows, places], axis=-1), found
        )
        return {
            "input_ids": ids,
            "input_mask": batch["input_mask"],
            "segment_ids": batch["segment_ids"],
            "generator_positions": places,
            "generator_ids": originals,
            "generator_weights": weights,
        }

    def fault_of(self, record):
        return None
