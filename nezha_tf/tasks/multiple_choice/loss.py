"""Objective of questions with several choices of which one is right."""

from nezha_tf.modeling.finetuning import NO_CHOICE
from nezha_tf.tasks.classification.loss import ClassificationLoss, entropies_among


class MultipleChoiceLoss(ClassificationLoss):
    """Cross-entropy over the choices of each question.

    Batches have `label_ids`, int [B], the number of the right choice, beside the model's inputs
    [B, C, T]. Label smoothing spreads over the choices that a question has.
    """

    def weights(self, batch):
        # Only padding has no first choice.
        return batch["input_mask"][:, 0, 0]

    def values(self, logits, batch):
        is_choice, labels = logits > NO_CHOICE / 2, batch["label_ids"]
        return entropies_among(logits, logits, labels, is_choice, self._label_smoothing)

    def predictions(self, outputs):
        """Returns {"logits": float32 [B, C], "probabilities": float32 [B, C]}."""
        return {"logits": outputs["logits"], **super().predictions(outputs)}
