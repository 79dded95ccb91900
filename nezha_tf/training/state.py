"""The state that a run needs to resume, with its names in a checkpoint.

Beside the weights, a checkpoint has `global_step`, the optimizer's moments with the originals' slot
names, averages of weights with TF1's names, and under `nezha_tf/` the variables that only we have,
such as the states of the dropout generators.
"""

from nezha_tf.checkpoints.name_table import tf1_name, tf1_names


def training_state(model, optimizer, **others):
    """Returns {name in a checkpoint: variable} for everything that a run needs to resume.

    Args:
      model: a Keras model whose variables are in the name table.
      optimizer: a `RunOptimizer` built on the model's trainable variables.
      **others: dicts of name to variable to add.
    """
    state = {name: variable.value for name, variable in tf1_names(model).items()}
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
