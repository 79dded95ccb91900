"""UniLM's four objectives (arXiv 1905.03197 §2.3); the first is that of BERT and NEZHA."""

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.casts import OneText, SourceAndTarget
from nezha_tf.objectives.objective import Objective, Use
from nezha_tf.objectives.terms import MASKED_LM, NEXT_SENTENCE


class Bidirectional(Objective):
    """Masked LM with bidirectional attention; for pairs also next-sentence prediction."""

    segment_ids = SEGMENT_IDS["bidirectional"]
    uses = (Use("fill_mask", segment_ids),)

    def ranks(self, batch):
        return attention_mask.bidirectional_ranks(batch["input_mask"])

    def terms(self, of_pairs):
        return (MASKED_LM, NEXT_SENTENCE) if of_pairs else (MASKED_LM,)


class OneDirection(Objective):
    """Masked LM on one text where a token sees itself and one side; subclasses choose the side."""

    def transforms(self, examples):
        return (*super().transforms(examples), OneText(self.segment_ids[0]))

    def terms(self, of_pairs):
        return (MASKED_LM,)


class LeftToRight(OneDirection):
    """A token sees the tokens left of it."""

    segment_ids = SEGMENT_IDS["left_to_right"]
    uses = (Use("left_to_right", segment_ids),)

    def ranks(self, batch):
        return attention_mask.left_to_right_ranks(batch["input_mask"])


class RightToLeft(OneDirection):
    """A token sees the tokens right of it. No program writes backwards, so this has no use."""

    segment_ids = SEGMENT_IDS["right_to_left"]

    def ranks(self, batch):
        return attention_mask.right_to_left_ranks(batch["input_mask"])


class SequenceToSequence(Objective):
    """Masked LM on source and target; the target sees the source and what is left of it."""

    segment_ids = SEGMENT_IDS["seq2seq"]
    uses = (Use("seq2seq", segment_ids),)

    def transforms(self, examples):
        return (*super().transforms(examples), SourceAndTarget(self.segment_ids))

    def ranks(self, batch):
        return attention_mask.seq2seq_ranks(batch["input_mask"], batch["segment_ids"])

    def terms(self, of_pairs):
        return (MASKED_LM,)
