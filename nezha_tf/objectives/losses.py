"""Losses and metrics as sums and weights; the training loop divides them for the global batch."""

from typing import NamedTuple

from keras import ops

from nezha_tf.modeling.compiled_parts import fused


class WeightedMean(NamedTuple):
    """A sum and a weight, which are summed over replicas and batches before they are divided.

    Attributes:
      sum: float32 scalar.
      weight: float32 scalar.
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
    """Returns the cross-entropies of logits and labels, float32 [...].

    Args:
      logits: [..., classes].
      labels: int [...].
      label_smoothing: share of the target probability that is spread evenly over all classes
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
