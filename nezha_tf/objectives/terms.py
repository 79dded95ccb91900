"""The terms of pretraining losses: each is one kind of prediction with its weights."""

import abc

from keras import ops

from nezha_tf.modeling.label_scores import EVEN_LOSS, HIT, LOSS
from nezha_tf.objectives.losses import cross_entropies, hits

# Added to the masked-LM loss's denominator (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5
# The same of both losses of ELECTRA (run_pretraining.py).
REPLACED_TOKEN_EPSILON = 1e-6


class LossTerm(abc.ABC):
    """A kind of prediction; several objectives may share it, and it is computed once for all.

    Attributes:
      name: its loss is logged as NAME_loss, its accuracy as NAME_accuracy.
      epsilon, scale: those of the loss's `WeightedMean`.
      head: name of the model's layer that makes the prediction from the encoder's output.
      is_pooled: whether the prediction is made from the pooler's output.
      inputs: names of the features that the model must read for this prediction.
      labels_as_inputs: names of the labels and weights, which the model reads, too, if the batch
        has them; with them it can do without logits.
      predicts_tokens: whether it predicts tokens of the vocabulary; then it has a method
        `labels(batch)`, which returns these, int32 with the shape of the weights.
      is_language_model: whether each token is predicted from all before it, so that the loss
        gives a perplexity.
    """

    name: str
    epsilon = 0.0
    scale = 1.0
    head = "masked_lm"
    is_pooled = False
    inputs: tuple[str, ...] = ()
    labels_as_inputs: tuple[str, ...] = ()
    predicts_tokens = False
    is_language_model = False

    @abc.abstractmethod
    def weights(self, batch):
        """Returns the weight of each prediction, float32 [B, ...], 0 for padding."""

    @abc.abstractmethod
    def values(self, outputs, batch, label_smoothing=0.0):
        """Returns the loss of each prediction, float32 with the shape of the weights."""

    @abc.abstractmethod
    def hits(self, outputs, batch):
        """Returns 1 for right predictions, else 0: float32 with the shape of the weights."""

    def rates(self, outputs, batch):
        """Returns further metrics: dict of name to (values, weights), both like `hits`.

        They are logged as NAME_name; the weights are multiplied by `weights`.
        """
        return {}


class MaskedLM(LossTerm):
    """Masked LM: the cross-entropy of the tokens at `masked_lm_positions`, [B, P].

    The model gives all logits, or the scores of the labels alone where logits would be too many.
    """

    name = "masked_lm"
    epsilon = MASKED_LM_EPSILON
    inputs = ("masked_lm_positions",)
    labels_as_inputs = ("masked_lm_ids", "masked_lm_weights")
    predicts_tokens = True

    def labels(self, batch):
        return batch[f"{self.name}_ids"]

    def weights(self, batch):
        return batch[f"{self.name}_weights"]

    def values(self, outputs, batch, label_smoothing=0.0):
        if f"{self.name}_scores" in outputs:
            return _losses(outputs[f"{self.name}_scores"], label_smoothing)
        return cross_entropies(
            outputs[f"{self.name}_logits"], self.labels(batch), label_smoothing=label_smoothing
        )

    def hits(self, outputs, batch):
        if f"{self.name}_scores" in outputs:
            return outputs[f"{self.name}_scores"][HIT]
        return hits(outputs[f"{self.name}_logits"], self.labels(batch))


class GeneratorLM(MaskedLM):
    """The masked LM of ELECTRA's generator at `generator_positions`, [B, P]."""

    name = head = "generator"
    epsilon = REPLACED_TOKEN_EPSILON
    inputs = ("generator_positions", "generator_ids", "generator_weights")
    labels_as_inputs = ()


class ReplacedToken(LossTerm):
    """Whether the generator replaced a token (ELECTRA, arXiv 2003.10555 §3.1), all tokens, [B, T].

    The labels are the model's output `is_replaced`, because the model draws the replacements. They
    are not smoothed.
    """

    name = "replaced_token"
    epsilon = REPLACED_TOKEN_EPSILON
    # `disc_weight` of configure_pretraining.py: the loss of two classes is much the smaller one.
    scale = 50.0
    head = "discriminator"

    def weights(self, batch):
        return ops.cast(batch["input_mask"], "float32")

    def values(self, outputs, batch, label_smoothing=0.0):
        logits = outputs["replaced_token_logits"]
        return ops.softplus(logits) - logits * outputs["is_replaced"]

    def hits(self, outputs, batch):
        return ops.cast(ops.equal(_found(outputs), outputs["is_replaced"]), "float32")

    def rates(self, outputs, batch):
        """Returns what tells an able discriminator from one that finds nothing.

        `majority_accuracy` is the accuracy of the guess that no token is replaced.
        """
        found, right = _found(outputs), self.hits(outputs, batch)
        return {
            "majority_accuracy": (1.0 - outputs["is_replaced"], ops.ones_like(right)),
            "precision": (right, found),
            "recall": (right, outputs["is_replaced"]),
        }


def _found(outputs):
    """Returns 1 for tokens that the discriminator takes for replaced ones, float32 [B, T]."""
    return ops.cast(outputs["replaced_token_logits"] > 0, "float32")


class NextToken(LossTerm):
    """The cross-entropy of the token that follows, at all places with a weight, [B, T]."""

    name = "next_token"
    inputs = ("next_token_weights",)
    predicts_tokens = is_language_model = True

    def labels(self, batch):
        return ops.roll(batch["input_ids"], -1, axis=1)

    def weights(self, batch):
        return batch["next_token_weights"]

    def values(self, outputs, batch, label_smoothing=0.0):
        return _losses(outputs["next_token_scores"], label_smoothing)

    def hits(self, outputs, batch):
        return outputs["next_token_scores"][HIT]


def _losses(scores, label_smoothing):
    """Returns the cross-entropies of `label_scores.label_scores`, [...], with smoothed labels."""
    return (1.0 - label_smoothing) * scores[LOSS] + label_smoothing * scores[EVEN_LOSS]


class NextSentence(LossTerm):
    """Next-sentence prediction (BERT, arXiv 1810.04805 §3.1), [B].

    `next_sentence_labels`, int [B, 1], is 0 if the second text follows the first. Labels are not
    smoothed.
    """

    name = head = "next_sentence"
    is_pooled = True

    def weights(self, batch):
        # Every example begins with [CLS]; only padding has no first token.
        return ops.cast(batch["input_mask"][:, 0], "float32")

    def values(self, outputs, batch, label_smoothing=0.0):
        return cross_entropies(outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0])

    def hits(self, outputs, batch):
        return hits(outputs["next_sentence_logits"], batch["next_sentence_labels"][:, 0])


MASKED_LM = MaskedLM()
GENERATOR_LM = GeneratorLM()
REPLACED_TOKEN = ReplacedToken()
NEXT_TOKEN = NextToken()
NEXT_SENTENCE = NextSentence()
