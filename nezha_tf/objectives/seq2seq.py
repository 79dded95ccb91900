"""Predicting the target from the source and from what is left of it, as UniLM is fine-tuned."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.masked_lm import PieceLoss
from nezha_tf.objectives.terms import MASKED_LM


class Seq2SeqLoss(PieceLoss):
    """The target's pieces, masked or shifted, under the mask `seq2seq` (UniLM §2.3).

    The segment ids tell source (even) and target (odd) apart.
    """

    def __init__(self, label_smoothing=0.0):
        super().__init__(_ranks, (MASKED_LM,), label_smoothing)


def _ranks(batch):
    return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])
