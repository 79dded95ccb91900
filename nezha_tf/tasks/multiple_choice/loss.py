"""Objective of questions with several choices of which one is right."""

from keras import ops

from nezha_tf.modeling.finetuning import NO_CHOICE
from nezha_tf.objectives.losses import cross_entropies
from nezha_tf.tasks.classification.loss import LOSS, ClassificationLoss


class MultipleChoiceLoss(ClassificationLoss):
    """Cross-entropy over the choices of each question.

    Batches have `label_ids`, int [B], the number of the right choice, beside the model's inputs
    [B, C, T]. Label smoothing spreads over the choices that a question has.
    """

    def loss_weights(self, batch):
        """Returns {name of the loss: weight of each question, float32 [B]}."""
        # Only padding has no first choice.
        return {LOSS: ops.cast(batch["input_mask"][:, 0, 0], "float32")}

    def values(self, logits, label_ids):
        losses = cross_entropies(logits, label_ids)
        if self._label_smoothing:
            is_choice = ops.cast(logits > NO_CHOICE / 2, "float32")
            mean = ops.sum(logits * is_choice, axis=-1)
            mean = mean / ops.maximum(ops.sum(is_choice, axis=-1), 1.0)
            even = ops.logsumexp(logits, axis=-1) - mean
            losses = (1.0 - self._label_smoothing) * losses + self._label_smoothing * even
        return losses

    def predictions(self, outputs):
        """Returns {"logits": float32 [B, C], "probabilities": float32 [B, C]}."""
        return {"logits": outputs["logits"], **super().predictions(outputs)}
