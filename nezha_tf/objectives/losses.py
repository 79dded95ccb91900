"""Losses and metrics as sums and weights; the training loop divides them for the global batch."""

from typing import NamedTuple, Protocol, runtime_checkable

from keras import ops

from nezha_tf.modeling.compiled_parts import fused


@runtime_checkable
class Loss(Protocol):
    """The loss of batches. A batch is a dict of feature name to tensor [B, ...].

    Examples of padding only must have weight 0, because batches are filled up with them.
    Fine-tuning also asks for `predictions(outputs)`, a dict of name to tensor [B, ...], and R-Drop
    for `distributions(outputs, batch)`, {name of a loss: finite logits [..., classes]}.
    """

    def inputs(self, batch):
        """Returns the model's inputs, a dict of name to tensor."""

    def loss_weights(self, batch):
        """Returns {name of a loss: weight of each prediction, float32 [B, ...]}.

        The weights are known before the forward pass, so that parts of a batch can be divided by
        the weight of the whole batch.
        """

    def losses(self, outputs, batch):
        """Returns a dict of name to `WeightedMean`; the sum of mean times `scale` is minimised.

        Args:
          outputs: the model's outputs for `inputs`, a dict.
          batch: the batch.
        """

    def metrics(self, outputs, batch):
        """Returns a dict of name to `WeightedMean`, the metrics to report beside the losses."""


class WeightedMean(NamedTuple):
    """A sum and a weight, which are summed over replicas and batches before they are divided.

    Attributes:
      sum, weight: float32 scalars.
      epsilon: added to the total weight before the division.
      scale: how much the mean counts in the total loss.
    """

    sum: object
    weight: object
    epsilon: float = 0.0
    scale: float = 1.0

    def plus(self, other):
        """Returns the `WeightedMean` of both."""
        return self._replace(sum=self.sum + other.sum, weight=self.weight + other.weight)

    def over(self, weight):
        """Returns this sum divided by the total weight, its part of the whole mean.

        If the weight is 0, the result is 0: a batch may have no example for a loss.
        """
        weight = weight + self.epsilon
        return self.sum / ops.where(ops.equal(weight, 0.0), 1.0, weight)

    def where(self, condition):
        """Returns this if the condition (a bool scalar) holds, else a sum and weight of 0."""
        total, weight = (ops.where(condition, value, 0.0) for value in (self.sum, self.weight))
        return self._replace(sum=total, weight=weight)


def weighted(values, weights, epsilon=0.0):
    """Returns the weighted mean of values [...] with weights float [...] as a `WeightedMean`."""
    weights = ops.cast(weights, "float32")
    return WeightedMean(ops.sum(values * weights), ops.sum(weights), epsilon)


@fused
def cross_entropies(logits, labels, *, label_smoothing=0.0):
    """Returns the cross-entropies of logits [..., classes] and labels int [...], float32 [...].

    `label_smoothing` is the share of the target probability that is spread evenly over all classes
    (Szegedy et al., arXiv 1512.00567 §7).
    """
    logits = ops.cast(logits, "float32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    if label_smoothing:
        even = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * even
    return losses


@fused
def hits(logits, labels):
    """Returns float32 [...], 1 if the most probable class is right, else 0."""
    right = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return ops.cast(right, "float32")
