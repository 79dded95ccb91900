"""What is predicted of a pair in training: masked pieces of the target, or each next piece."""

import numpy as np

from nezha_tf.data.in_memory import generator
from nezha_tf.modeling.attention_mask import SEGMENT_IDS

TARGET_PREDICTIONS = ("masked", "shift")


class MaskedTarget:
    """Masks a share of the target, its final [SEP] among it: 80 % [MASK], 10 % random, 10 % kept.

    As UniLM's fine-tuning (arXiv 1905.03197 §2.4); the released program takes the share of the
    target without [SEP], we count it.
    """

    def __init__(self, vocabulary, masked_lm_prob, max_predictions_per_seq):
        """Args:
        vocabulary: a `Vocabulary`.
        masked_lm_prob: the share.
        max_predictions_per_seq: P, bound on the number of predictions.
        """
        self._mask_id = vocabulary.mask_id
        self._vocab_size = len(vocabulary)
        self._masked_lm_prob = masked_lm_prob
        self.max_predictions_per_seq = max_predictions_per_seq

    def __call__(self, ids, target_start, rng):
        """Masks one pair.

        Args:
          ids: int32 array [n], packed; not changed.
          target_start: place of the target's first piece.
          rng: a `np.random.Generator`.

        Returns:
          (ids with replacements [n], positions [m] in rising order, the pieces there [m]).
        """
        length = len(ids) - target_start
        count = max(1, round(length * self._masked_lm_prob))
        count = min(self.max_predictions_per_seq, count)
        positions = target_start + np.sort(rng.permutation(length)[:count])
        labels = ids[positions]
        draw = rng.random(count)
        others = rng.integers(self._vocab_size, size=count)
        output = ids.copy()
        output[positions] = np.where(
            draw < 0.8, self._mask_id, np.where(draw < 0.9, others, labels)
        )
        return output, positions, labels


class ShiftedTarget:
    """Each piece from the source's [SEP] on predicts the next one: one pass, no [MASK]."""

    def __init__(self, max_target_length):
        """Args:
        max_target_length: P, the most pieces of a target, its final [SEP] counted.
        """
        self.max_predictions_per_seq = max_target_length

    def __call__(self, ids, target_start, rng):
        """As `MaskedTarget`; the ids stay, and nothing is drawn."""
        return ids, np.arange(target_start - 1, len(ids) - 1), ids[target_start:]


class TrainingFeatures:
    """Makes the features of packed pairs, for `InMemoryReader`."""

    def __init__(self, pairs, prediction, max_seq_length):
        """Args:
        pairs: `packing.Pairs`, each with a target.
        prediction: `MaskedTarget` or `ShiftedTarget`.
        max_seq_length: T.
        """
        self._pairs = pairs
        self._prediction = prediction
        self._max_seq_length = max_seq_length

    def __call__(self, indices, seed, epochs):
        """Returns the features of the schema for pretraining, without next sentences.

        Args:
          indices: int array [B], of the pairs.
          seed, epochs: what is predicted is drawn from these and the pair's index.
        """
        size, length = len(indices), self._max_seq_length
        predictions = self._prediction.max_predictions_per_seq
        batch = {
            "input_ids": np.zeros((size, length), np.int32),
            "input_mask": np.zeros((size, length), np.int32),
            "segment_ids": np.zeros((size, length), np.int32),
            "masked_lm_positions": np.zeros((size, predictions), np.int32),
            "masked_lm_ids": np.zeros((size, predictions), np.int32),
            "masked_lm_weights": np.zeros((size, predictions), np.float32),
        }
        source_segment, target_segment = SEGMENT_IDS["seq2seq"]
        for row, (index, epoch) in enumerate(zip(indices, epochs, strict=True)):
            ids, target_start = self._pairs.ids[index], self._pairs.target_starts[index]
            rng = generator(seed, int(epoch), int(index))
            ids, positions, labels = self._prediction(ids, target_start, rng)
            batch["input_ids"][row, : len(ids)] = ids
            batch["input_mask"][row, : len(ids)] = 1
            batch["segment_ids"][row, :target_start] = source_segment
            batch["segment_ids"][row, target_start : len(ids)] = target_segment
            batch["masked_lm_positions"][row, : len(positions)] = positions
            batch["masked_lm_ids"][row, : len(positions)] = labels
            batch["masked_lm_weights"][row, : len(positions)] = 1
        return batch
