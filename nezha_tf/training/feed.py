"""Feeds batches to the replicas of a strategy."""

import tensorflow as tf

from nezha_tf.data import record_stream
from nezha_tf.training import device_memory


class Feed:
    """Makes training batches, beginning at any batch of the sequence."""

    def __init__(self, strategy, reader, batch_size, seed, sharding="element"):
        """Args:
        strategy: a `tf.distribute.Strategy`.
        reader: `ExampleReader`.
        batch_size: examples in a global batch, a multiple of the replicas.
        seed: seed of the order of examples.
        sharding: how workers share the examples: see `ExampleReader.training_batches`.
        """
        self._strategy = strategy
        self._reader = reader
        self._replica_batch_size = batch_size // strategy.num_replicas_in_sync
        self._seed = seed
        self._sharding = sharding

    def batches(self, batches_read):
        """Returns an iterator of global batches, each split over the replicas.

        Args:
          batches_read: number of batches to leave out at the start.
        """

        def dataset(context):
            replicas = self._strategy.num_replicas_in_sync // context.num_input_pipelines
            batches = self._reader.training_batches(
                self._replica_batch_size * replicas,
                self._seed,
                batches_read,
                num_shards=context.num_input_pipelines,
                shard=context.input_pipeline_id,
                by=self._sharding,
            )
            batches = batches.rebatch(self._replica_batch_size, drop_remainder=True)
            # rebatch loses the mark that the dataset is endless.
            return record_stream.prefetched(record_stream.endless(batches))

        return iter(self._strategy.distribute_datasets_from_function(dataset))

    def explain(self, error):
        """Returns a line on damaged records that are skipped, or raises the error's cause."""
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = "lower --train_batch_size or raise --gradient_accumulation_steps"
            raise device_memory.fault(error, advice) from error
        return self._reader.explain(error)
