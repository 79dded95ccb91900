"""Objective of classification by the words that fill the blanks of a pattern."""

import numpy as np
from keras import ops

from nezha_tf.tasks.classification.loss import ClassificationLoss


class PromptLoss(ClassificationLoss):
    """Cross-entropy over classes, each of which is a word in the blanks (PET, arXiv 2001.07676).

    The score of a class is the sum of the log probabilities of its word's tokens, one for each
    blank. Softmax over the scores gives the probabilities of the classes, as in PET §3.1; for words
    of several tokens this is the product over independent blanks.
    """

    def __init__(self, label_tokens, mask_id, label_smoothing=0.0):
        """Args:
        label_tokens: int [L, P], the tokens of each class's word.
        mask_id: the id of [MASK]. Each example has P of them.
        label_smoothing: as of `ClassificationLoss`.
        """
        super().__init__(label_smoothing)
        self._label_tokens = np.asarray(label_tokens, np.int32)
        self._mask_id = mask_id

    def inputs(self, batch):
        """Returns the model's inputs with `masked_lm_positions`, int [B, P], of the blanks."""
        ids = batch["input_ids"]
        length = ops.shape(ids)[1]
        # The first blank has the highest rank.
        ranks = ops.where(ops.equal(ids, self._mask_id), length - ops.arange(length), 0)
        _, places = ops.top_k(ranks, self._label_tokens.shape[1])
        return {**super().inputs(batch), "masked_lm_positions": ops.cast(places, "int32")}

    def logits(self, outputs):
        log_probs = ops.log_softmax(ops.cast(outputs["masked_lm_logits"], "float32"), axis=-1)
        tokens = self._label_tokens
        blanks = range(tokens.shape[1])
        return sum(ops.take(log_probs[:, k], tokens[:, k], axis=-1) for k in blanks)
