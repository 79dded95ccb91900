"""The permutation language model (XLNet, arXiv 1906.08237 §2.2)."""

from nezha_tf.data import schema
from nezha_tf.modeling.pretraining import NezhaForPermutationLM
from nezha_tf.objectives.objective import Objective
from nezha_tf.objectives.permutation import CONTEXT, RANKS, PermutationOrder
from nezha_tf.objectives.terms import MASKED_LM
from nezha_tf.util.errors import UserError


class Permutation(Objective):
    """Some tokens are predicted from those before them in an order that is drawn.

    A prediction knows its place but not the token there: a second stream of states makes it. No
    token is replaced by [MASK].
    """

    reads = schema.UNMASKED_FEATURES
    model = NezhaForPermutationLM
    has_query_stream = has_memory = True
    options = ("num_predict",)

    def transforms(self, examples):
        if examples.vocabulary is None:
            raise UserError(
                "the objective permutation needs --vocab_file, the vocabulary that the examples "
                "were made with"
            )
        lengths = self.lengths(examples)
        return (PermutationOrder(examples.vocabulary, *lengths),)

    def lengths(self, examples):
        length = examples.lengths.max_seq_length
        num_predict = examples.num_predict or max(1, length // CONTEXT)
        return schema.Lengths(length, num_predict)

    def ranks(self, batch):
        return batch[RANKS.name]

    def terms(self, of_pairs):
        return (MASKED_LM,)
