"""What losses of pretraining are sums of: one prediction each, and what it counts."""

import abc

from keras import ops

from nezha_tf.objectives.losses import cross_entropies, hits

# In the denominator of the masked-LM loss (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5


class LossTerm(abc.ABC):
    """A prediction that several objectives may make; of all of them it is computed once.

    Attributes:
      name: its loss is NAME_loss in the record, and its share of hits NAME_accuracy.
      epsilon: of the loss's `WeightedMean`.
      is_pooled: whether it is made from the pooler's output.
    """

    name: str
    epsilon = 0.0
    is_pooled = False

    @abc.abstractmethod
    def weights(self, batch):
        """Returns what each prediction counts, float32 [B, ...]; those of padding nothing."""

    @abc.abstractmethod
    def values(self, outputs, batch, label_smoothing=0.0):
        """Returns the loss of each prediction, float32 of the weights' shape."""

    @abc.abstractmethod
    def hits(self, outputs, batch):
        """Returns 1.0 where a prediction is right, else 0.0, of the same shape."""


class MaskedLM(LossTerm):
    """The pieces at `masked_lm_positions`: cross-entropy, [B, P]."""

    name = "masked_lm"
    epsilon = MASKED_LM_EPSILON

    def weights(self, batch):
        return batch["masked_lm_weights"]

    def values(self, outputs, batch, label_smoothing=0.0):
        logits, labels = outputs["masked_lm_logits"], batch["masked_lm_ids"]
        return cross_entropies(logits, labels, label_smoothing)

    def hits(self, outputs, batch):
        return hits(outputs["masked_lm_logits"], batch["masked_lm_ids"])


class NextSentence(LossTerm):
    """Whether the second text follows the first (BERT, arXiv 1810.04805 §3.1): [B].

    `next_sentence_labels` int [B, 1] is 0 where it does. Labels are not smoothed.
    """

    name = "next_sentence"
    is_pooled = True

    def weights(self, batch):
        # Every example begins with [CLS]; only padding has no first piece.
        return ops.cast(batch["input_mask"][:, 0], "float32")

    def values(self, outputs, batch, label_smoothing=0.0):
        return cross_entropies(outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0])

    def hits(self, outputs, batch):
        return hits(outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0])


MASKED_LM = MaskedLM()
NEXT_SENTENCE = NextSentence()
