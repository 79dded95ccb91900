"""The loss of UniLM's fine-tuning for sequence to sequence."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.terms import MASKED_LM, TokenLoss


class Seq2SeqLoss(TokenLoss):
    """Predicts tokens of the target, masked or shifted, with the mask `seq2seq` (UniLM §2.3).

    Segment ids are even in the source and odd in the target.
    """

    def __init__(self, label_smoothing=0.0):
        super().__init__(_ranks, (MASKED_LM,), label_smoothing)


def _ranks(batch):
    return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])
