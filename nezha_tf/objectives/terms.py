"""The loss of models that predict tokens: a sum of terms, each one kind of prediction."""

import abc

from keras import ops

from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.label_scores import EVEN_LOSS, HIT, LOSS
from nezha_tf.objectives.losses import cross_entropies, hits, weighted

# Added to the masked-LM loss's denominator (`get_masked_lm_output` of BERT's run_pretraining.py).
MASKED_LM_EPSILON = 1e-5


class LossTerm(abc.ABC):
    """A kind of prediction; several objectives may share it, and it is computed once for all.

    Attributes:
      name: its loss is logged as NAME_loss, its accuracy as NAME_accuracy.
      epsilon, scale: those of the loss's `WeightedMean`.
      head: name of the model's layer that makes the prediction from the encoder's output.
      is_pooled: whether the prediction is made from the pooler's output.
      is_masked: whether it is made from the output at `masked_lm_positions` alone.
      inputs: names of the features that the model must read for this prediction.
      labels_as_inputs: names of the labels and weights, which the model reads, too, if the batch
        has them; with them it can do without logits.
      predicts_tokens: whether it has a method `labels(batch)` that returns the tokens to predict,
        int32 with the shape of the weights.
      is_language_model: whether each token is predicted from all before it, so that the loss
        gives a perplexity.
    """

    name: str
    epsilon = 0.0
    scale = 1.0
    head = "masked_lm"
    is_pooled = False
    is_masked = False
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
    is_masked = True
    inputs = ("masked_lm_positions",)
    labels_as_inputs = ("masked_lm_ids", "masked_lm_weights")
    predicts_tokens = True

    def labels(self, batch):
        return batch[f"{self.name}_ids"]

    def weights(self, batch):
        return batch[f"{self.name}_weights"]

    def values(self, outputs, batch, label_smoothing=0.0):
        if f"{self.name}_scores" in outputs:
            scores = outputs[f"{self.name}_scores"]
            return (1.0 - label_smoothing) * scores[LOSS] + label_smoothing * scores[EVEN_LOSS]
        return cross_entropies(
            outputs[f"{self.name}_logits"], self.labels(batch), label_smoothing=label_smoothing
        )

    def hits(self, outputs, batch):
        if f"{self.name}_scores" in outputs:
            return outputs[f"{self.name}_scores"][HIT]
        return hits(outputs[f"{self.name}_logits"], self.labels(batch))


class NextToken(MaskedLM):
    """The cross-entropy of the token that follows, at all places with a weight, [B, T]."""

    name = "next_token"
    epsilon = 0.0
    is_masked = False
    inputs = ("next_token_weights",)
    labels_as_inputs = ()
    is_language_model = True

    def labels(self, batch):
        return ops.roll(batch["input_ids"], -1, axis=1)


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
NEXT_TOKEN = NextToken()
NEXT_SENTENCE = NextSentence()

INPUTS = ("input_ids", "input_mask", "segment_ids")
# What the tokens before an example left behind, which texts a row has, and which tokens the middle
# layers compute: see `NezhaEncoder`.
OPTIONAL_INPUTS = ("memory", "memory_mask", "text_ids", "middle_positions")


class TokenLoss:
    """A sum of terms, with an attention mask made from ranks. A `losses.Loss`.

    Batches are dicts of the features of the schema: ids int [B, T], predictions [B, P].
    """

    def __init__(self, ranks, terms, label_smoothing=0.0, has_query_stream=False):
        """Args:
        ranks: function of a batch to the attention ranks, int [B, T] (see `attention_mask`).
        terms: `LossTerm`s.
        label_smoothing: smoothing of the labels in `losses`; see `cross_entropies`.
        has_query_stream: whether the query stream of a `NezhaForPermutationLM` predicts.
        """
        self.ranks = ranks
        self.terms = tuple(terms)
        self.has_query_stream = has_query_stream
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        """Returns the model's inputs with `attention_mask`, bool [B, 1, T, T].

        If the terms read few places of the last layer's output, these are `output_positions`: the
        same loss for less arithmetic. With a query stream, also `query_stream_mask` and
        `reads_query_stream`.
        """
        own = dict.fromkeys(name for term in self.terms for name in term.inputs)
        inputs = {name: batch[name] for name in (*INPUTS, *own)}
        ranks, input_mask = self.ranks(batch), batch["input_mask"]
        text_ids = batch.get("text_ids")
        inputs["attention_mask"] = attention_mask.from_ranks(ranks, input_mask, text_ids)
        optional = (
            *OPTIONAL_INPUTS,
            *(name for term in self.terms for name in term.labels_as_inputs),
        )
        inputs |= {name: batch[name] for name in optional if name in batch}
        if self.reads_few_places and self._are_fewer(batch):
            places = batch["masked_lm_positions"]
            inputs["output_positions"] = ops.pad(places, ((0, 0), (1, 0)))
        if self.has_query_stream:
            places = batch["masked_lm_positions"]
            inputs["query_stream_mask"] = attention_mask.strictly_below(ranks, input_mask, places)
            inputs["reads_query_stream"] = self.reads_query_stream(batch)
        return inputs

    @property
    def reads_few_places(self):
        """Whether the terms read the last layer's output at [CLS] and at masked places alone."""
        return all(term.is_pooled or term.is_masked for term in self.terms)

    def _are_fewer(self, batch):
        length = batch["input_ids"].shape[1]
        return length is not None and batch["masked_lm_positions"].shape[1] + 1 < length

    def reads_query_stream(self, batch):
        """Returns bool [B, 1], the examples that the query stream predicts."""
        return ops.ones_like(batch["input_mask"][:, :1], dtype="bool")

    def loss_weights(self, batch):
        return {f"{term.name}_loss": self.weights(term, batch) for term in self.terms}

    def losses(self, outputs, batch):
        losses = {}
        for term in self.terms:
            values = term.values(outputs, batch, self._label_smoothing)
            mean = weighted(values, self.weights(term, batch), term.epsilon)
            losses[f"{term.name}_loss"] = mean._replace(scale=term.scale)
        return losses

    def metrics(self, outputs, batch):
        metrics = {}
        for term in self.terms:
            weights = self.weights(term, batch)
            metrics[f"{term.name}_accuracy"] = weighted(term.hits(outputs, batch), weights)
            for name, (values, among) in term.rates(outputs, batch).items():
                metrics[f"{term.name}_{name}"] = weighted(values, weights * among)
        return metrics

    def weights(self, term, batch):
        return term.weights(batch)
