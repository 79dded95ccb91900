"""Predicting the target from the source and from what is left of it, as UniLM is fine-tuned."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.masked_lm import PieceLoss


class Seq2SeqLoss(PieceLoss):
    """The target's pieces, masked or shifted, under the mask `seq2seq` (UniLM §2.3).

    The segment ids tell source (even) and target (odd) apart.
    """

    def attention_mask(self, batch):
        return attention_mask.seq2seq(batch["input_mask"], batch["segment_ids"])
