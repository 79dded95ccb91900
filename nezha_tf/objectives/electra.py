"""Replaced token detection, the objective of ELECTRA (arXiv 2003.10555)."""

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens
from nezha_tf.objectives.mask_or_keep import MaskOrKeep
from nezha_tf.objectives.objective import Objective
from nezha_tf.objectives.terms import GENERATOR_LM, REPLACED_TOKEN
from nezha_tf.util.errors import UserError


class ReplacedTokens(Objective):
    """A generator fills masked places, and the model finds which tokens it replaced.

    The examples are those of masked LM, but a token to predict is masked or kept. The model cannot
    fill blanks afterwards: it has never read a [MASK].
    """

    segment_ids = SEGMENT_IDS["bidirectional"]
    shown_as = "bidirectional"
    model = NezhaForReplacedTokens
    # The loss of the model rises when the generator becomes better: its replacements are harder to
    # find. So values of different steps cannot be compared.
    best_metric = "generator_loss"

    def transforms(self, examples):
        if examples.vocabulary is None:
            raise UserError(
                "replaced_tokens needs --vocab_file, the vocabulary that the examples were made "
                "with, to mask tokens"
            )
        return (*super().transforms(examples), MaskOrKeep(examples.vocabulary.mask_id))

    def ranks(self, batch):
        return attention_mask.bidirectional_ranks(batch["input_mask"])

    def terms(self, of_pairs):
        return (GENERATOR_LM, REPLACED_TOKEN)
