"""UniLM's mixture: four cloze objectives told apart by the attention mask, and next sentence."""

from keras import ops

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import cross_entropies, hits, weighted
from nezha_tf.objectives.masked_lm import MASKED_LM_EPSILON
from nezha_tf.objectives.pretraining import MaskedLMLoss


class UniLMLoss(MaskedLMLoss):
    """Masked LM in which an example's segment ids say what its pieces see (UniLM §2.3).

    Batches are those of `MaskedLMLoss`, with segment ids as in
    `attention_mask.SEGMENT_IDS`; examples of all objectives may stand in one. Next-sentence
    prediction counts for the bidirectional ones only.
    """

    def __init__(self, names, label_smoothing=0.0, of_pairs=True):
        """Args:
        names: the objectives that have metrics of their own, keys of `SEGMENT_IDS`.
        label_smoothing, of_pairs: as for `MaskedLMLoss`.
        """
        super().__init__(label_smoothing, of_pairs)
        self._names = names

    def attention_mask(self, batch):
        return attention_mask.by_segments(batch["input_mask"], batch["segment_ids"])

    def loss_weights(self, batch):
        weights = super().loss_weights(batch)
        if self._of_pairs:
            is_of = attention_mask.objective_masks(batch["segment_ids"])
            weights["next_sentence_loss"] *= ops.cast(is_of["bidirectional"], "float32")
        return weights

    def metrics(self, outputs, batch):
        """Adds each objective's masked LM; the loss without label smoothing."""
        metrics = super().metrics(outputs, batch)
        predictions = outputs["masked_lm_logits"], batch["masked_lm_ids"]
        losses, right = cross_entropies(*predictions), hits(*predictions)
        is_of = attention_mask.objective_masks(batch["segment_ids"])
        for name in self._names:
            weights = batch["masked_lm_weights"] * ops.cast(is_of[name], "float32")[:, None]
            metrics[f"masked_lm_loss/{name}"] = weighted(losses, weights, MASKED_LM_EPSILON)
            metrics[f"masked_lm_accuracy/{name}"] = weighted(right, weights)
        return metrics
