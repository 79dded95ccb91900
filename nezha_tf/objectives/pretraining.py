"""Masked LM and next-sentence prediction, as BERT and NEZHA are pretrained."""

from keras import ops

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import accuracy, cross_entropy

# In the denominator of the masked-LM loss (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5


class MaskedLanguageModel:
    """Masked LM plus next-sentence prediction on bidirectional attention.

    Batches are dicts in the feature schema: ids int [B, T], predictions [B, P],
    `next_sentence_labels` int [B, 1]. An example that is nothing but padding counts for nothing.
    """

    def __init__(self, label_smoothing=0.0):
        """Args:
        label_smoothing: of the masked LM in `losses`; see `cross_entropy`.
        """
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        """Returns the model's inputs, the [B, 1, T, T] attention mask among them."""
        names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
        inputs = {name: batch[name] for name in names}
        inputs["attention_mask"] = attention_mask.bidirectional(batch["input_mask"])
        return inputs

    def weights(self, batch):
        """Returns what each prediction counts, by the name of its loss: [B, P] and [B].

        Known before the forward pass, so that parts of a batch can divide by the whole's sum.
        """
        return {
            "masked_lm_loss": batch["masked_lm_weights"],
            # Every example begins with [CLS]; only padding has no first piece.
            "next_sentence_loss": ops.cast(batch["input_mask"][:, 0], "float32"),
        }

    def losses(self, outputs, batch):
        """Returns the losses, each a `Ratio`; the sum of the divided ones is minimised."""
        weights = self.weights(batch)
        return {
            "masked_lm_loss": cross_entropy(
                outputs["masked_lm_logits"],
                batch["masked_lm_ids"],
                weights["masked_lm_loss"],
                MASKED_LM_EPSILON,
                self._label_smoothing,
            ),
            "next_sentence_loss": cross_entropy(
                outputs["next_sentence_logits"],
                batch["next_sentence_labels"][:, 0],
                weights["next_sentence_loss"],
            ),
        }

    def metrics(self, outputs, batch):
        """Returns the metrics beside the losses, each a `Ratio`."""
        weights = self.weights(batch)
        return {
            "masked_lm_accuracy": accuracy(
                outputs["masked_lm_logits"], batch["masked_lm_ids"], weights["masked_lm_loss"]
            ),
            "next_sentence_accuracy": accuracy(
                outputs["next_sentence_logits"],
                batch["next_sentence_labels"][:, 0],
                weights["next_sentence_loss"],
            ),
        }
