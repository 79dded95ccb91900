"""R-Drop: two passes with different dropout should agree (Wu et al., arXiv 2106.14448)."""

from keras import ops

from nezha_tf.objectives.losses import weighted
from nezha_tf.util.errors import UserError

PREFIX = "r_drop_"


class RDrop:
    """Wraps an objective and passes each batch through the model twice, as one batch of 2 * B.

    Its losses are the objective's, averaged over both passes. For each loss that has a
    distribution, `r_drop_<name>` is added: alpha times the divergence of the two passes, with the
    same weights. This follows the authors' code; the paper's formula adds the losses of the two
    passes, so its alpha is twice this one.

    The first axes of the objective's `distributions` are those of the loss's weights; over further
    axes the mean is taken. So classes are [B, L], tags [B, T, L], start and end of a span
    [B, 2, T], and L labels that are each true or false [B, L, 2].
    """

    def __init__(self, objective, alpha):
        """Args:
          objective: a `losses.Loss` with `distributions`.
          alpha: the weight of the divergence.

        Raises:
          UserError: the objective has no `distributions`.
        """
        if getattr(objective, "distributions", None) is None:
            raise UserError(
                f"--{PREFIX}alpha={alpha:g} compares distributions over classes, but this "
                "objective predicts none; leave it out"
            )
        self._objective = objective
        self._alpha = alpha

    def inputs(self, batch):
        return self._objective.inputs(_twice(batch))

    def loss_weights(self, batch):
        """Returns the objective's weights, [2 * B, ...], and [B, ...] for the divergences."""
        weights = self._objective.loss_weights
        of_divergences = {PREFIX + name: values for name, values in weights(batch).items()}
        return {**weights(_twice(batch)), **of_divergences}

    def losses(self, outputs, batch):
        """Returns a dict of name to `WeightedMean`; the sum of these means is minimised."""
        losses = self._objective.losses(outputs, _twice(batch))
        weights = self._objective.loss_weights(batch)
        distributions = self._objective.distributions(outputs, _twice(batch))
        for name, logits in distributions.items():
            values = divergences(*ops.split(logits, 2, axis=0))
            further = tuple(range(len(weights[name].shape), len(values.shape)))
            mean = weighted(ops.mean(values, axis=further), weights[name])
            losses[PREFIX + name] = mean._replace(sum=self._alpha * mean.sum)
        return losses

    def metrics(self, outputs, batch):
        return self._objective.metrics(outputs, _twice(batch))


def divergences(logits, others):
    """Returns the mean of KL(p|q) and KL(q|p), float32 [...], of logits [..., classes]."""
    log_p, log_q = (ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in (logits, others))
    return 0.5 * ops.sum((ops.exp(log_p) - ops.exp(log_q)) * (log_p - log_q), axis=-1)


def _twice(batch):
    return {name: ops.concatenate([values, values], axis=0) for name, values in batch.items()}
