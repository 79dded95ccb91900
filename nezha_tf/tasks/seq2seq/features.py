"""The training features of pairs: what is predicted in a target, in the schema of pretraining."""

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data import draws
from nezha_tf.objectives.policies import budgets, replacements


class MaskedTarget:
    """Masks a share of the target, its final [SEP] included: 80 % [MASK], 10 % random, 10 % kept.

    This is UniLM's fine-tuning (arXiv 1905.03197 §2.4). UniLM's released program takes the share
    of the target without [SEP]; here [SEP] counts.
    """

    def __init__(self, vocabulary, masked_lm_prob, max_predictions_per_seq, max_target_length):
        """Args:
        vocabulary: a `Vocabulary`.
        masked_lm_prob: the share of the target's tokens to mask.
        max_predictions_per_seq: P, bound on the number of predictions.
        max_target_length: most tokens of a target, its final [SEP] included.
        """
        self.max_predictions_per_seq = max_predictions_per_seq
        self._mask_id = vocabulary.mask_id
        self._vocab_size = len(vocabulary)
        self._budgets = budgets(max_target_length, masked_lm_prob, max_predictions_per_seq)

    def __call__(self, ids, target_start, seed):
        """Masks one pair.

        Args:
          ids: int32 [n], the packed pair.
          target_start: int32 [], place of the target's first token.
          seed: int64 [2], the seed of all draws.

        Returns:
          (ids after masking [n], positions [m] in rising order, the original tokens there [m]),
          all int32.
        """
        shape = tf.shape(ids)
        places, replacing, tokens = tf.unstack(draws.graph_seeds(seed, 3))
        is_target = tf.range(shape[0]) >= target_start
        count = tf.gather(self._budgets, shape[0] - target_start)
        order = draws.graph_shares(shape, places)
        rank = tf.argsort(tf.argsort(tf.where(is_target, order, 2.0)))
        is_masked = rank < count
        shares = draws.graph_shares(shape, replacing)
        random_ids = draws.graph_choices(shape, tokens, self._vocab_size)
        others = replacements(ids, shares, random_ids, self._mask_id, tf.where)
        positions = tf.cast(tf.reshape(tf.where(is_masked), [-1]), tf.int32)
        return tf.where(is_masked, others, ids), positions, tf.gather(ids, positions)


class ShiftedTarget:
    """Every token from the source's [SEP] on predicts the next one, in one pass without [MASK]."""

    def __init__(self, max_target_length):
        """`max_target_length` is the most tokens of a target, its final [SEP] included."""
        self.max_predictions_per_seq = max_target_length

    def __call__(self, ids, target_start, seed):
        """Like `MaskedTarget.__call__`, but `ids` are returned unchanged and nothing is drawn."""
        return ids, tf.range(target_start - 1, tf.size(ids) - 1), ids[target_start:]


class TrainingFeatures:
    """Makes the features of packed pairs, for `InMemoryReader`."""

    def __init__(self, pairs, prediction, max_seq_length):
        """Args:
        pairs: `generation.sources.Pairs`, each with a target.
        prediction: a `MaskedTarget` or `ShiftedTarget`.
        max_seq_length: T.
        """
        with tf.device("/cpu:0"):
            self._ids = tf.constant(np.concatenate(pairs.ids))
            self._splits = tf.constant(np.cumsum([0, *map(len, pairs.ids)]))
            self._target_starts = tf.constant(np.array(pairs.target_starts, np.int32))
        self._prediction = prediction
        self._max_seq_length = max_seq_length

    def __call__(self, index, seed, epoch):
        """Returns the features of pair `index`, int64 [], without `next_sentence_labels`.

        Draws depend on `seed`, `epoch` (int64 []) and the index.
        """
        original = self._ids[self._splits[index] : self._splits[index + 1]]
        target_start = self._target_starts[index]
        seed = draws.graph_example_seed(seed, epoch, index)
        ids, positions, labels = self._prediction(original, target_start, seed)
        is_source = tf.range(tf.size(ids)) < target_start
        length, most = self._max_seq_length, self._prediction.max_predictions_per_seq
        return {
            "input_ids": _padded(ids, length),
            "input_mask": _padded(tf.ones_like(ids), length),
            "segment_ids": _padded(tf.where(is_source, *SEGMENT_IDS["seq2seq"]), length),
            "masked_lm_positions": _padded(positions, most),
            "masked_lm_ids": _padded(labels, most),
            "masked_lm_weights": _padded(tf.ones(tf.shape(labels)), most),
        }


def _padded(values, length):
    return tf.ensure_shape(tf.pad(values, [(0, length - tf.size(values))]), (length,))
