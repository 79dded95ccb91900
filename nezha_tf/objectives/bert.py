"""The loss of BERT's and NEZHA's pretraining: masked LM and next-sentence prediction."""

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.terms import MASKED_LM, NEXT_SENTENCE
from nezha_tf.objectives.token_loss import TokenLoss


class MaskedLMLoss(TokenLoss):
    """Masked LM plus next-sentence prediction with bidirectional attention."""

    def __init__(self, label_smoothing=0.0, of_pairs=True):
        """Args:
        label_smoothing: see `TokenLoss`.
        of_pairs: whether the examples are pairs; if False (RoBERTa's full sentences), the loss is
          only masked LM.
        """
        terms = (MASKED_LM, NEXT_SENTENCE) if of_pairs else (MASKED_LM,)
        super().__init__(_ranks, terms, label_smoothing)


def _ranks(batch):
    return attention_mask.bidirectional_ranks(batch["input_mask"])
