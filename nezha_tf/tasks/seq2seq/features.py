"""Makes the training features of pairs, in the schema of pretraining."""

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import draws


class TrainingFeatures:
    """Makes the features of packed pairs, for `InMemoryReader`."""

    def __init__(self, pairs, prediction, max_seq_length):
        """Args:
        pairs: `packing.Pairs`, each with a target.
        prediction: a `MaskedTarget` or `ShiftedTarget` (`tasks.seq2seq.targets`).
        max_seq_length: T.
        """
        with tf.device("/cpu:0"):
            self._ids = tf.constant(np.concatenate(pairs.ids))
            self._splits = tf.constant(np.cumsum([0, *map(len, pairs.ids)]))
            self._target_starts = tf.constant(np.array(pairs.target_starts, np.int32))
        self._prediction = prediction
        self._max_seq_length = max_seq_length

    def __call__(self, index, seed, epoch):
        """Returns one pair's features in the schema of pretraining, without `next_sentence_labels`.

        Args:
          index: int64 [], the pair's index.
          seed, epoch: int64 []; draws depend on these and the index.
        """
        ids = self._ids[self._splits[index] : self._splits[index + 1]]
        target_start = self._target_starts[index]
        segments = tf.where(tf.range(tf.size(ids)) < target_start, *SEGMENT_IDS["seq2seq"])
        features = {"input_mask": tf.ones_like(ids), "segment_ids": segments}
        ids, positions, labels = self._prediction(
            ids, target_start, draws.graph_example_seed(seed, epoch, index)
        )
        features["input_ids"] = ids
        predictions = {
            "masked_lm_positions": positions,
            "masked_lm_ids": labels,
            "masked_lm_weights": tf.ones(tf.shape(labels)),
        }
        most = self._prediction.max_predictions_per_seq
        return {
            **{name: _padded(values, self._max_seq_length) for name, values in features.items()},
            **{name: _padded(values, most) for name, values in predictions.items()},
        }


def _padded(values, length):
    """Returns values [n] padded with zeros to [length]."""
    return tf.ensure_shape(tf.pad(values, [(0, length - tf.size(values))]), (length,))
