"""The memory of a model between two steps: the states of the tokens before a batch."""

import tensorflow as tf

from nezha_tf.data.stream_reader import STREAM_STARTS
from nezha_tf.util.errors import UserError


class Memory:
    """What `NezhaEncoder` reads as `memory` and `memory_mask`, in variables of a run.

    Where a stream begins, nothing is remembered.
    """

    def __init__(self, strategy, model, batch_size, length):
        """Args:
          strategy: the `tf.distribute.Strategy` of the model.
          model: a Keras model with an `encoder`.
          batch_size: B, the number of streams.
          length: M, the number of tokens to remember of each stream.

        Raises:
          UserError: there are several replicas.
        """
        if strategy.num_replicas_in_sync > 1:
            raise UserError(
                f"--memory_length={length} works on one device, and there are "
                f"{strategy.num_replicas_in_sync}; choose one with CUDA_VISIBLE_DEVICES, or leave "
                "the flag out"
            )
        config = model.config
        shape = (batch_size, config.num_hidden_layers, length, config.hidden_size)
        with strategy.scope():
            self._states = tf.Variable(tf.zeros(shape, model.compute_dtype), trainable=False)
            self._mask = tf.Variable(tf.zeros((batch_size, length), tf.int32), trainable=False)

    def with_batch(self, batch):
        """Returns a batch with the features of the memory."""
        mask = self._mask * (1 - batch[STREAM_STARTS.name])
        return {**batch, "memory": self._states, "memory_mask": mask}

    def keep(self, found):
        """Remembers the result of `encoder.with_memory`."""
        self._states.assign(found["memory"])
        self._mask.assign(found["memory_mask"])

    def state(self):
        """Returns a dict of names in a checkpoint to the variables."""
        return {"nezha_tf/memory": self._states, "nezha_tf/memory_mask": self._mask}
