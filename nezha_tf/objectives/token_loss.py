"""The loss of models that predict tokens: the base of pretraining's and sequence to sequence's."""

from keras import ops

from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.losses import weighted

INPUTS = ("input_ids", "input_mask", "segment_ids")
# What the tokens before an example left behind: see `NezhaEncoder.call`.
MEMORY = ("memory", "memory_mask")


class TokenLoss:
    """A sum of terms, with an attention mask made from ranks. A `protocol.Loss`.

    Batches are dicts of the features of the schema: ids int [B, T], predictions [B, P].

    Attributes:
      terms: tuple of `LossTerm`.
      ranks: function of a batch to the attention ranks, int [B, T] (see `attention_mask`).
      has_query_stream: whether examples are predicted by the query stream of a
        `NezhaForPermutationLM`.
    """

    def __init__(self, ranks, terms, label_smoothing=0.0, has_query_stream=False):
        """Args:
        ranks, terms, has_query_stream: see the attributes.
        label_smoothing: smoothing of the labels in `losses`; see `cross_entropies`.
        """
        self.ranks = ranks
        self.terms = tuple(terms)
        self.has_query_stream = has_query_stream
        self._label_smoothing = label_smoothing

    def inputs(self, batch):
        """Returns the model's inputs with `attention_mask`, bool [B, 1, T, T].

        With a query stream, also `query_stream_mask` and `reads_query_stream`.
        """
        own = dict.fromkeys(name for term in self.terms for name in term.inputs)
        inputs = {name: batch[name] for name in (*INPUTS, *own)}
        ranks, input_mask = self.ranks(batch), batch["input_mask"]
        inputs["attention_mask"] = attention_mask.from_ranks(ranks, input_mask)
        optional = (*MEMORY, *(name for term in self.terms for name in term.labels_as_inputs))
        inputs |= {name: batch[name] for name in optional if name in batch}
        if self.has_query_stream:
            places = batch["masked_lm_positions"]
            inputs["query_stream_mask"] = attention_mask.strictly_below(ranks, input_mask, places)
            inputs["reads_query_stream"] = self.reads_query_stream(batch)
        return inputs

    def reads_query_stream(self, batch):
        """Returns bool [B, 1], the examples that the query stream predicts."""
        return ops.ones_like(batch["input_mask"][:, :1], dtype="bool")

    def loss_weights(self, batch):
        return {f"{term.name}_loss": self.weights(term, batch) for term in self.terms}

    def losses(self, outputs, batch):
        found = {}
        for term in self.terms:
            values = term.values(outputs, batch, self._label_smoothing)
            mean = weighted(values, self.weights(term, batch), term.epsilon)
            found[f"{term.name}_loss"] = mean._replace(scale=term.scale)
        return found

    def metrics(self, outputs, batch):
        found = {}
        for term in self.terms:
            weights = self.weights(term, batch)
            found[f"{term.name}_accuracy"] = weighted(term.hits(outputs, batch), weights)
            for name, (values, among) in term.rates(outputs, batch).items():
                found[f"{term.name}_{name}"] = weighted(values, weights * among)
        return found

    def weights(self, term, batch):
        """Returns the weights of a term's predictions, [B, ...]."""
        return term.weights(batch)
