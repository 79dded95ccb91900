"""Masked LM and next-sentence prediction, as BERT and NEZHA are pretrained."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.masked_lm import PieceLoss
from nezha_tf.objectives.terms import MASKED_LM, NEXT_SENTENCE


class MaskedLMLoss(PieceLoss):
    """Masked LM plus next-sentence prediction on bidirectional attention."""

    def __init__(self, label_smoothing=0.0, of_pairs=True):
        """Args:
        label_smoothing: as for `PieceLoss`.
        of_pairs: whether the examples are pairs; without (RoBERTa's full sentences) there is
          masked LM alone.
        """
        terms = (MASKED_LM, NEXT_SENTENCE) if of_pairs else (MASKED_LM,)
        super().__init__(_ranks, terms, label_smoothing)


def _ranks(batch):
    return attention_mask.bidirectional_ranks(batch["input_mask"])
