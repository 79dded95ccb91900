"""What a run asks of the object that it minimises: written down once, for all losses."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Loss(Protocol):
    """The loss of batches. A batch is a dict of feature name to tensor [B, ...].

    An example that is nothing but padding must count for nothing: batches are filled up with such.
    """

    def inputs(self, batch):
        """Returns the model's inputs, a dict of name to tensor."""

    def loss_weights(self, batch):
        """Returns what each prediction counts, by the name of its loss: float32 [B, ...].

        Known before the forward pass, so that parts of a batch can divide by the whole's sum.
        """

    def losses(self, outputs, batch):
        """Returns dict of name to `WeightedMean`; the sum of the divided ones is minimised.

        Args:
          outputs: what the model made of `inputs`, a dict.
          batch: the batch.
        """

    def metrics(self, outputs, batch):
        """Returns dict of name to `WeightedMean`, of what is told beside the losses."""


@runtime_checkable
class ComparableLoss(Loss, Protocol):
    """A loss whose predictions are distributions, which `RDrop` compares."""

    def distributions(self, outputs, batch):
        """Returns dict of the name of a loss to logits [..., classes], none of them -inf."""


@runtime_checkable
class PredictingLoss(Loss, Protocol):
    """A loss of a task that predicts, too."""

    def predictions(self, outputs):
        """Returns what is kept of each example, dict of name to tensor [B, ...]."""
