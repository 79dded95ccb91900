"""The checkpoints of a run, in the TF1 Saver layout and under TF1 names.

So one reader serves published checkpoints and ours, and the originals read ours. Beside the
weights a file holds `global_step`, the optimizer's moments under the originals' slot names,
and under `nezha_tf/` what only we have: the state of the dropout generators and the like.
"""

import os
import re

import tensorflow as tf

from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.name_table import tf1_names

_FILE_NAME = re.compile(r"model\.ckpt-(\d+)\.index$")


def training_state(model, optimizer, loss_scale=None, **others):
    """Returns {name in a checkpoint: variable} of all that a run must have to go on.

    Args:
      model: a Keras model of the name table.
      optimizer: a `MomentOptimizer` built on the model's trainable variables.
      loss_scale: a `DynamicLossScale`, or None.
      **others: further variables, stored as `nezha_tf/<name>`.
    """
    state = {name: variable.value for name, variable in tf1_names(model).items()}
    for name, (m, v) in zip(tf1_names(model), optimizer.slots(), strict=True):
        state[f"{name}/{optimizer.slot_names[0]}"] = m.value
        state[f"{name}/{optimizer.slot_names[1]}"] = v.value
    state["global_step"] = optimizer.iterations.value
    for index, variable in enumerate(model.non_trainable_variables):
        state[f"nezha_tf/random_state_{index}"] = variable.value
    if loss_scale is not None:
        state.update(loss_scale.variables_by_name())
    state.update({f"nezha_tf/{name}": variable for name, variable in others.items()})
    return state


class RunCheckpoints:
    """The numbered checkpoints `model.ckpt-STEP` in the folder of a run."""

    def __init__(self, folder, state, keep_max=5):
        """Args:
        folder: where they are.
        state: dict of name to variable, as of `training_state`.
        keep_max: how many are kept; older ones are deleted after a save.
        """
        self.folder = folder
        self._state = state
        self._keep_max = keep_max

    def steps(self):
        """Returns the steps of the checkpoints there are, rising."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else ()
        return sorted(int(match[1]) for match in map(_FILE_NAME.match, names) if match)

    def path(self, step):
        """Returns the prefix of the checkpoint of a step."""
        return os.path.join(self.folder, f"model.ckpt-{step}")

    def restore_newest(self):
        """Sets every variable from the newest checkpoint.

        Returns:
          Its prefix, or None where there is none.

        Raises:
          UserError: it does not fit; the message names the first variable and both shapes.
        """
        steps = self.steps()
        if not steps:
            return None
        prefix, reader = tf1.open_checkpoint(self.path(steps[-1]))
        tf1.assign(prefix, reader, self._state)
        return prefix

    def save(self, step):
        """Writes the checkpoint of a step, whole or not at all, and deletes old ones."""
        tf1.write_tensors(self.path(step), self._state)
        steps = self.steps()
        for old in steps[: -self._keep_max]:
            for ending in (".index", ".data-00000-of-00001"):
                os.remove(self.path(old) + ending)
        # The file by which TF1's tools find the newest checkpoint; we go by the names.
        kept = [os.path.basename(self.path(number)) for number in steps[-self._keep_max :]]
        tf.compat.v1.train.update_checkpoint_state(
            self.folder, os.path.basename(self.path(step)), kept
        )
