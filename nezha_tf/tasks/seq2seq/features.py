"""What is predicted of a pair in training: masked pieces of the target, or each next piece."""

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data.in_memory import example_seed


class MaskedTarget:
    """Masks a share of the target, its final [SEP] among it: 80 % [MASK], 10 % random, 10 % kept.

    As UniLM's fine-tuning (arXiv 1905.03197 §2.4); the released program takes the share of the
    target without [SEP], we count it.
    """

    def __init__(self, vocabulary, masked_lm_prob, max_predictions_per_seq, max_target_length):
        """Args:
        vocabulary: a `Vocabulary`.
        masked_lm_prob: the share.
        max_predictions_per_seq: P, bound on the number of predictions.
        max_target_length: most pieces of a target, its final [SEP] counted.
        """
        self.max_predictions_per_seq = max_predictions_per_seq
        self._mask_id = vocabulary.mask_id
        self._vocab_size = len(vocabulary)
        # By Python's rounding, whatever the device's.
        self._counts = np.array(
            [
                min(max_predictions_per_seq, max(1, round(length * masked_lm_prob)))
                for length in range(max_target_length + 1)
            ],
            np.int32,
        )

    def __call__(self, ids, target_start, seed):
        """Masks one pair.

        Args:
          ids: int32 [n], packed.
          target_start: int32 [], place of the target's first piece.
          seed: int64 [2], of all that is drawn.

        Returns:
          (ids with replacements [n], positions [m] in rising order, the pieces there [m]).
        """
        shape = tf.shape(ids)
        places, replacing, pieces = tf.unstack(
            tf.random.experimental.stateless_split(seed, 3, alg="philox")
        )
        is_target = tf.range(shape[0]) >= target_start
        count = tf.gather(self._counts, shape[0] - target_start)
        order = tf.random.stateless_uniform(shape, places, alg="philox")
        rank = tf.argsort(tf.argsort(tf.where(is_target, order, 2.0)))
        is_masked = rank < count
        draw = tf.random.stateless_uniform(shape, replacing, alg="philox")
        random_ids = tf.random.stateless_uniform(
            shape, pieces, 0, self._vocab_size, tf.int32, alg="philox"
        )
        others = tf.where(draw < 0.8, self._mask_id, tf.where(draw < 0.9, random_ids, ids))
        positions = tf.cast(tf.reshape(tf.where(is_masked), [-1]), tf.int32)
        return tf.where(is_masked, others, ids), positions, tf.gather(ids, positions)


class ShiftedTarget:
    """Each piece from the source's [SEP] on predicts the next one: one pass, no [MASK]."""

    def __init__(self, max_target_length):
        """Args:
        max_target_length: P, the most pieces of a target, its final [SEP] counted.
        """
        self.max_predictions_per_seq = max_target_length

    def __call__(self, ids, target_start, seed):
        """As `MaskedTarget`; the ids stay, and nothing is drawn."""
        return ids, tf.range(target_start - 1, tf.size(ids) - 1), ids[target_start:]


class TrainingFeatures:
    """Makes the features of packed pairs, for `InMemoryReader`."""

    def __init__(self, pairs, prediction, max_seq_length):
        """Args:
        pairs: `packing.Pairs`, each with a target.
        prediction: `MaskedTarget` or `ShiftedTarget`.
        max_seq_length: T.
        """
        with tf.device("/cpu:0"):
            self._ids = tf.constant(np.concatenate(pairs.ids))
            self._splits = tf.constant(np.cumsum([0, *map(len, pairs.ids)]))
            self._target_starts = tf.constant(np.array(pairs.target_starts, np.int32))
        self._prediction = prediction
        self._max_seq_length = max_seq_length

    def __call__(self, index, seed, epoch):
        """Returns one pair's features in the schema of pretraining, without next sentences.

        Args:
          index: int64 [], of the pair.
          seed, epoch: what is predicted is drawn from these and the index.
        """
        ids = self._ids[self._splits[index] : self._splits[index + 1]]
        target_start = self._target_starts[index]
        segments = tf.where(tf.range(tf.size(ids)) < target_start, *SEGMENT_IDS["seq2seq"])
        features = {"input_mask": tf.ones_like(ids), "segment_ids": segments}
        ids, positions, labels = self._prediction(
            ids, target_start, example_seed(seed, epoch, index)
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
    """Returns values [n] with zeros behind, [length]."""
    return tf.ensure_shape(tf.pad(values, [(0, length - tf.size(values))]), (length,))
