"""What is done to the examples of a stream on their way from records to batches."""

from typing import Protocol


class Transform(Protocol):
    """Changes the examples of a batch, each by itself: nothing depends on the others beside it.

    Attributes:
      reads: tuple of `schema.Feature`, what the batch must hold.
      gives: tuple of `schema.Feature`, what it holds afterwards.
      at_once: how many examples the reader hands over together, as far as whole batches have
        so many; 1 where it makes no difference.
    """

    reads: tuple
    gives: tuple
    at_once: int

    def __call__(self, batch, numbers, seed):
        """Changes a batch, in the graph.

        Args:
          batch: dict of feature name to int32 or float32 [B, n], n static.
          numbers: int64 [B], of the examples in the stream. What is drawn for an example is a
            function of the seed and of its number.
          seed: string or number.

        Returns:
          Another dict, of B examples in the same order.
        """

    def fault_of(self, record):
        """Says why a record that fits the schema is nothing for this transform, or None.

        Args:
          record: bytes of the record.
        """
