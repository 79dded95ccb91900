"""The interface of the steps that change examples between reading and training."""

from typing import Protocol


class Transform(Protocol):
    """Changes each example of a batch; the result does not depend on the batch's other examples.

    Attributes:
      reads: tuple of `schema.Feature`, the features that the batch must have.
      gives: tuple of `schema.Feature`, the features of the result.
      at_once: the number of examples that the reader should pass together, rounded down to
        whole batches; 1 if the number does not affect the speed.
    """

    reads: tuple
    gives: tuple
    at_once: int

    def __call__(self, batch, numbers, seed):
        """Changes a batch, in the graph.

        Args:
          batch: dict of feature name to int32 or float32 [B, n], n static.
          numbers: int64 [B], the examples' numbers in the stream. What is drawn for an example
            depends only on the seed and on its number.
          seed: string or number.

        Returns:
          A new dict with the B examples in the same order.
        """

    def fault_of(self, record):
        """Returns why this transform cannot use a record that fits the schema, or None.

        Args:
          record: bytes of the record.
        """
