"""The state that a run needs to resume, under its names in a checkpoint.

Beside the weights a file holds `global_step`, the optimizer's moments under the originals' slot
names, averages of weights under TF1's name for them, and under `nezha_tf/` what only we have: the
state of the dropout generators and the like.
"""

from nezha_tf.checkpoints.name_table import tf1_name, tf1_names


def training_state(model, optimizer, **others):
    """Returns {name in a checkpoint: variable} of all that a run needs to resume.

    Args:
      model: a Keras model of the name table.
      optimizer: a `MomentOptimizer` built on the model's trainable variables.
      **others: dicts of name to variable that are taken in.
    """
    state = {name: variable.value for name, variable in tf1_names(model).items()}
    for variable, slots in zip(model.trainable_variables, optimizer.slots(), strict=True):
        for slot_name, slot in zip(optimizer.slot_names, slots, strict=True):
            state[f"{tf1_name(variable.path)}/{slot_name}"] = slot.value
    state["global_step"] = optimizer.iterations.value
    for index, variable in enumerate(random_states(model)):
        state[f"nezha_tf/random_state_{index}"] = variable
    for more in others.values():
        state.update(more)
    return state


def random_states(model):
    """Returns the states of a model's dropout generators, in the model's order."""
    weights = {id(variable) for variable in model.weights}
    return [variable.value for variable in model.variables if id(variable) not in weights]
