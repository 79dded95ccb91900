"""The objective of BERT (arXiv 1810.04805) and NEZHA: masked LM and next-sentence prediction."""

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.objective import Objective, Use
from nezha_tf.objectives.terms import MASKED_LM, NEXT_SENTENCE


class Bidirectional(Objective):
    """Masked LM with bidirectional attention; for pairs also next-sentence prediction.

    Without pairs (RoBERTa's full sentences), it is masked LM alone.
    """

    has_packed_texts = True
    segment_ids = SEGMENT_IDS["bidirectional"]
    uses = (Use("fill_mask", segment_ids),)

    def ranks(self, batch):
        return attention_mask.bidirectional_ranks(batch["input_mask"])

    def terms(self, of_pairs):
        return (MASKED_LM, NEXT_SENTENCE) if of_pairs else (MASKED_LM,)
