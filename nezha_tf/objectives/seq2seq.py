"""Predicting the target from the source and from what is left of it, as UniLM is fine-tuned."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import accuracy, cross_entropy
from nezha_tf.objectives.pretraining import MASKED_LM_EPSILON


class SequenceToSequence:
    """Cross-entropy of the target's pieces, masked or shifted, under the mask `seq2seq`.

    Batches are dicts in the feature schema without next sentences: ids int [B, T], predictions
    [B, P]. The segment ids tell source (even) and target (odd) apart.
    """

    def __init__(self, label_smoothing=0.0):
        """Args:
        label_smoothing: of the target's pieces in `losses`; see `cross_entropy`.
        """
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        """Returns the model's inputs, the [B, 1, T, T] attention mask among them."""
        names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
        inputs = {name: batch[name] for name in names}
        inputs["attention_mask"] = attention_mask.seq2seq(batch["input_mask"], batch["segment_ids"])
        return inputs

    def weights(self, batch):
        """Returns what each prediction counts, by the name of its loss: [B, P]."""
        return {"masked_lm_loss": batch["masked_lm_weights"]}

    def losses(self, outputs, batch):
        """Returns the loss as a `Ratio` by its name."""
        loss = cross_entropy(
            outputs["masked_lm_logits"],
            batch["masked_lm_ids"],
            batch["masked_lm_weights"],
            MASKED_LM_EPSILON,
            self._label_smoothing,
        )
        return {"masked_lm_loss": loss}

    def metrics(self, outputs, batch):
        """Returns the metrics beside the loss, each a `Ratio`."""
        right = accuracy(
            outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]
        )
        return {"masked_lm_accuracy": right}
