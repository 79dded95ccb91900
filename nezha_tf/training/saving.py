"""What a run saves in its checkpoints, and saving beside the training."""

from concurrent import futures

import tensorflow as tf

from nezha_tf.checkpoints.adapter_saving import saved_weights
from nezha_tf.checkpoints.name_table import tf1_name
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints


def training_state(model, optimizer, **others):
    """Returns {name in a checkpoint: variable} for everything that a run needs to resume.

    Args:
      model: a Keras model whose variables are in the name table.
      optimizer: a `RunOptimizer` built on the model's trainable variables.
      **others: dicts of name to variable to add.
    """
    state = {name: variable.value for name, variable in saved_weights(model).items()}
    for variable in model.trainable_variables:
        for slot_name, slot in optimizer.slots_of(variable).items():
            state[f"{tf1_name(variable.path)}/{slot_name}"] = slot.value
    state["global_step"] = optimizer.iterations.value
    state.update(optimizer.state())
    for index, variable in enumerate(random_states(model)):
        state[f"nezha_tf/random_state_{index}"] = variable
    for more in others.values():
        state.update(more)
    return state


def random_states(model):
    """Returns the states of a model's dropout generators, in the model's order."""
    weights = {id(variable) for variable in model.weights}
    return [variable.value for variable in model.variables if id(variable) not in weights]


class CheckpointsBeside(RunCheckpoints):
    """Checkpoints that a thread writes while the run goes on; at most one is being written.

    A `RunCheckpoints` in all other things: what reads the folder or chooses from it waits until the
    checkpoint is there.
    """

    def __init__(self, *arguments, **options):
        """Arguments are those of `RunCheckpoints`."""
        super().__init__(*arguments, **options)
        # The interpreter waits for its thread at the end, so an interrupt leaves no half file.
        self._writer = futures.ThreadPoolExecutor(1, "checkpoint")
        self._writing = None

    def save(self, step):
        """Takes the state as it is now, and begins to write the checkpoint of a step.

        Raises:
          UserError: the checkpoint before it could not be written.
        """
        if not self._is_chief:
            return
        self.settle()
        # TensorFlow copies no variable here: an update that comes while a tensor of its old value
        # is held writes into new memory. From a GPU or TPU the values are copied to this machine.
        with tf.device("CPU:0"):
            state = {name: tf.identity(value) for name, value in self._state.items()}
        self._writing = self._writer.submit(self._write, step, state)

    def settle(self):
        """Waits until the checkpoint is written.

        Raises:
          UserError: it could not be written; older checkpoints are unchanged.
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self):
        """Does what `settle` does, and ends the thread."""
        try:
            self.settle()
        finally:
            self._writer.shutdown()

    def steps(self):
        """Returns the steps of the existing checkpoints, rising."""
        self.settle()
        return super().steps()

    def note_evaluation(self, step, results):
        """Does what `RunCheckpoints.note_evaluation` does."""
        self.settle()
        return super().note_evaluation(step, results)
