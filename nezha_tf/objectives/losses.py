"""Loss and metrics as pairs: only the training loop divides, over the global batch."""

from typing import NamedTuple

from keras import ops


class WeightedMean(NamedTuple):
    """A mean that is not yet divided, so that it can be summed over replicas and batches.

    Attributes:
      sum: float32 scalar.
      weight: float32 scalar.
      epsilon: added to the summed weight when it divides.
    """

    sum: object
    weight: object
    epsilon: float = 0.0

    def plus(self, other):
        """Returns the mean over both, not yet divided."""
        return WeightedMean(self.sum + other.sum, self.weight + other.weight, self.epsilon)

    def over(self, weight):
        """Returns the part of a mean that this sum is; `weight` is the whole's.

        A mean over nothing is 0: a batch may have no example that a loss is of.
        """
        weight = weight + self.epsilon
        return self.sum / ops.where(ops.equal(weight, 0.0), 1.0, weight)

    def where(self, condition):
        """Returns this where the condition (a bool scalar) holds, or else a mean over nothing."""
        total, weight = (ops.where(condition, value, 0.0) for value in (self.sum, self.weight))
        return WeightedMean(total, weight, self.epsilon)


def weighted(values, weights, epsilon=0.0):
    """Returns the weighted mean of values [...] with weights float [...] as a `WeightedMean`."""
    weights = ops.cast(weights, "float32")
    return WeightedMean(ops.sum(values * weights), ops.sum(weights), epsilon)


def cross_entropies(logits, labels, label_smoothing=0.0):
    """Returns the cross-entropy of each of several classes, float32 [...].

    Args:
      logits: [..., classes].
      labels: int [...].
      label_smoothing: share of the target that is spread evenly over all classes (Szegedy et
        al., arXiv 1512.00567 §7).
    """
    logits = ops.cast(logits, "float32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    if label_smoothing:
        even = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * even
    return losses


def hits(logits, labels):
    """Returns 1.0 where the likeliest class is the right one, else 0.0; arguments as above."""
    right = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return ops.cast(right, "float32")
