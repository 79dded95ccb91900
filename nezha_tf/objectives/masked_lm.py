"""Predicting pieces: what every objective of pretraining and of sequence to sequence shares."""

import abc

from nezha_tf.objectives.losses import cross_entropies, hits, weighted

# In the denominator of the masked-LM loss (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5
INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


class PieceLoss(abc.ABC):
    """Cross-entropy and accuracy of the predictions of a batch.

    Batches are dicts in the feature schema: ids int [B, T], predictions [B, P]. A subclass says
    who sees whom. An example that is nothing but padding counts for nothing.
    """

    def __init__(self, label_smoothing=0.0):
        """Args:
        label_smoothing: of the predictions in `losses`; see `cross_entropies`.
        """
        self._label_smoothing = label_smoothing

    @abc.abstractmethod
    def attention_mask(self, batch):
        """Returns who sees whom, bool [B, 1, T, T]; each objective has its own."""

    def inputs(self, batch):
        """Returns the model's inputs, the [B, 1, T, T] attention mask among them."""
        inputs = {name: batch[name] for name in INPUTS}
        return {**inputs, "attention_mask": self.attention_mask(batch)}

    def loss_weights(self, batch):
        """Returns what each prediction counts, by the name of its loss: [B, P].

        Known before the forward pass, so that parts of a batch can divide by the whole's sum.
        """
        return {"masked_lm_loss": batch["masked_lm_weights"]}

    def losses(self, outputs, batch):
        """Returns the losses, each a `WeightedMean`; the sum of the divided ones is minimised."""
        losses = cross_entropies(
            outputs["masked_lm_logits"], batch["masked_lm_ids"], self._label_smoothing
        )
        weights = self.loss_weights(batch)["masked_lm_loss"]
        return {"masked_lm_loss": weighted(losses, weights, MASKED_LM_EPSILON)}

    def metrics(self, outputs, batch):
        """Returns the metrics beside the losses, each a `WeightedMean`."""
        right = hits(outputs["masked_lm_logits"], batch["masked_lm_ids"])
        return {"masked_lm_accuracy": weighted(right, self.loss_weights(batch)["masked_lm_loss"])}
