"""Masked LM and next-sentence prediction, as BERT and NEZHA are pretrained."""

from keras import ops

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import cross_entropies, hits, weighted
from nezha_tf.objectives.masked_lm import PieceLoss


class MaskedLMLoss(PieceLoss):
    """Masked LM plus next-sentence prediction on bidirectional attention.

    Batches have `next_sentence_labels` int [B, 1] beside what `PieceLoss` reads.
    """

    def __init__(self, label_smoothing=0.0, of_pairs=True):
        """Args:
        label_smoothing: as for `PieceLoss`.
        of_pairs: whether the examples are pairs; without (RoBERTa's full sentences) there is
          masked LM alone.
        """
        super().__init__(label_smoothing)
        self._of_pairs = of_pairs

    def attention_mask(self, batch):
        return attention_mask.bidirectional(batch["input_mask"])

    def loss_weights(self, batch):
        """Adds what each pair counts: [B]."""
        weights = super().loss_weights(batch)
        if self._of_pairs:
            # Every example begins with [CLS]; only padding has no first piece.
            weights["next_sentence_loss"] = ops.cast(batch["input_mask"][:, 0], "float32")
        return weights

    def losses(self, outputs, batch):
        losses = super().losses(outputs, batch)
        if self._of_pairs:
            values = cross_entropies(*_next_sentence(outputs, batch))
            weights = self.loss_weights(batch)["next_sentence_loss"]
            losses["next_sentence_loss"] = weighted(values, weights)
        return losses

    def metrics(self, outputs, batch):
        metrics = super().metrics(outputs, batch)
        if self._of_pairs:
            right = hits(*_next_sentence(outputs, batch))
            weights = self.loss_weights(batch)["next_sentence_loss"]
            metrics["next_sentence_accuracy"] = weighted(right, weights)
        return metrics


def _next_sentence(outputs, batch):
    return outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0]
