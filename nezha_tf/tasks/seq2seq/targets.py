"""Chooses what is predicted in the target of a pair: masked tokens, or every next token."""

import tensorflow as tf

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
        """Args:
        max_target_length: P, the most tokens of a target, its final [SEP] included.
        """
        self.max_predictions_per_seq = max_target_length

    def __call__(self, ids, target_start, seed):
        """Like `MaskedTarget.__call__`, but `ids` are returned unchanged and nothing is drawn."""
        return ids, tf.range(target_start - 1, tf.size(ids) - 1), ids[target_start:]
