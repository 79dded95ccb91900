"""Masked LM and next-sentence prediction, as BERT and NEZHA are pretrained."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import accuracy, cross_entropy

# In the denominator of the masked-LM loss (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5


class MaskedLanguageModel:
    """Masked LM plus next-sentence prediction on bidirectional attention.

    Batches are dicts in the feature schema: ids int [B, T], predictions [B, P],
    `next_sentence_labels` int [B, 1].
    """

    def inputs(self, batch):
        """Returns the model's inputs, the [B, 1, T, T] attention mask among them."""
        names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
        inputs = {name: batch[name] for name in names}
        inputs["attention_mask"] = attention_mask.bidirectional(batch["input_mask"])
        return inputs

    def losses(self, outputs, batch):
        """Returns the losses, each a `Ratio`; the sum of the divided ones is minimised."""
        return {
            "masked_lm_loss": cross_entropy(
                outputs["masked_lm_logits"],
                batch["masked_lm_ids"],
                batch["masked_lm_weights"],
                MASKED_LM_EPSILON,
            ),
            "next_sentence_loss": cross_entropy(
                outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0], None
            ),
        }

    def metrics(self, outputs, batch):
        """Returns the metrics beside the losses, each a `Ratio`."""
        return {
            "masked_lm_accuracy": accuracy(
                outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]
            ),
            "next_sentence_accuracy": accuracy(
                outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0], None
            ),
        }
