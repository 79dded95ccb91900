"""Loss and metrics as pairs: only the training loop divides, over the global batch."""

from typing import NamedTuple

from keras import ops


class Ratio(NamedTuple):
    """A mean that is not yet divided, so that it can be summed over replicas and batches.

    Attributes:
      sum: float32 scalar.
      weight: float32 scalar.
      epsilon: added to the summed weight when it divides.
    """

    sum: object
    weight: object
    epsilon: float = 0.0


def cross_entropy(logits, labels, weights, epsilon=0.0):
    """Returns the weighted cross-entropy of classes as a `Ratio`.

    Args:
      logits: [..., classes].
      labels: int [...].
      weights: float [...], or None for ones.
      epsilon: see `Ratio`.
    """
    losses = ops.sparse_categorical_crossentropy(
        labels, ops.cast(logits, "float32"), from_logits=True
    )
    return _weighted(losses, weights, epsilon)


def accuracy(logits, labels, weights):
    """Returns the weighted share of right classes as a `Ratio`; arguments as above."""
    right = ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32"))
    return _weighted(ops.cast(right, "float32"), weights, 0.0)


def _weighted(values, weights, epsilon):
    weights = ops.ones_like(values) if weights is None else ops.cast(weights, "float32")
    return Ratio(ops.sum(values * weights), ops.sum(weights), epsilon)
