"""Several objectives in one batch; each example has the mask and terms of its objective."""

from keras import ops

from nezha_tf.objectives.losses import weighted
from nezha_tf.objectives.token_loss import TokenLoss


class MixtureLoss(TokenLoss):
    """The joint loss of several objectives (UniLM, arXiv 1905.03197 §2.3).

    `objective_ids`, int [B, 1], says which objective an example is for. A term that several
    objectives have is one mean over all their examples. It is also reported for each of these
    objectives, as NAME_loss/OBJECTIVE and NAME_accuracy/OBJECTIVE, without label smoothing.
    """

    def __init__(self, losses, label_smoothing=0.0):
        """Args:
        losses: dict of objective to its `TokenLoss`, in the order of `objective_ids`.
        label_smoothing: see `TokenLoss`.
        """
        self._losses = losses
        terms = dict.fromkeys(term for loss in losses.values() for term in loss.terms)
        has_query_stream = any(loss.has_query_stream for loss in losses.values())
        super().__init__(self._ranks, terms, label_smoothing, has_query_stream)

    def weights(self, term, batch):
        weights, having = term.weights(batch), self._having(term)
        if len(having) == len(self._losses):
            return weights
        return weights * self._are_of(having, batch, weights)

    def metrics(self, outputs, batch):
        metrics = super().metrics(outputs, batch)
        for term in (term for term in self.terms if len(self._having(term)) > 1):
            losses, right = term.values(outputs, batch), term.hits(outputs, batch)
            for objective in self._having(term):
                weights = term.weights(batch)
                weights = weights * self._are_of([objective], batch, weights)
                loss = weighted(losses, weights, term.epsilon)
                metrics[f"{term.name}_loss/{objective}"] = loss
                metrics[f"{term.name}_accuracy/{objective}"] = weighted(right, weights)
        return metrics

    def reads_query_stream(self, batch):
        names = [name for name, loss in self._losses.items() if loss.has_query_stream]
        return self._are_of(names, batch, batch["objective_ids"]) > 0

    def _having(self, term):
        """Returns the names of the objectives that have a term."""
        return [name for name, loss in self._losses.items() if term in loss.terms]

    def _are_of(self, objectives, batch, like):
        """Returns float32 [B, 1, ...], 1 for the examples of some objectives, else 0.

        It has as many axes as `like`, [B, ...].
        """
        places = [place for place, name in enumerate(self._losses) if name in objectives]
        is_of = ops.any(ops.equal(batch["objective_ids"], ops.array(places, "int32")), axis=1)
        axes = tuple(range(1, len(like.shape)))
        return ops.cast(ops.expand_dims(is_of, axes) if axes else is_of, "float32")

    def _ranks(self, batch):
        ranks = ops.zeros_like(batch["input_mask"])
        for place, loss in enumerate(self._losses.values()):
            ranks = ops.where(batch["objective_ids"] == place, loss.ranks(batch), ranks)
        return ranks
