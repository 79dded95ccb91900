"""A small batch that all pretraining objectives read, and the gradients of their losses."""

import numpy as np
import tensorflow as tf

BATCH, LENGTH, PREDICTIONS = 2, 9, 3


def batch(memory=0):
    """Features for all objectives here; with padding, and with `memory` remembered tokens."""
    rng = np.random.default_rng(0)
    shape, slots = (BATCH, LENGTH), (BATCH, PREDICTIONS)
    places = np.array([[1, 3, 6], [2, 4, 0]])
    found = {
        "input_ids": rng.integers(5, 40, shape),
        "input_mask": np.arange(LENGTH) < np.array([[LENGTH], [6]]),
        "segment_ids": (np.arange(LENGTH) > 4) + np.zeros(shape),
        "masked_lm_positions": places,
        "masked_lm_ids": rng.integers(5, 40, slots),
        "generator_positions": places,
        "generator_ids": rng.integers(5, 40, slots),
        "permutation_ranks": rng.permuted(np.tile(np.arange(LENGTH), (BATCH, 1)), axis=1),
        "objective_ids": [[0], [1]],
        "label_ids": [0, 1],
    }
    found = {name: tf.constant(np.asarray(values, "int32")) for name, values in found.items()}
    weights = tf.constant([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    found |= {"masked_lm_weights": weights, "generator_weights": weights}
    found["next_token_weights"] = tf.cast(found["input_mask"], tf.float32)
    if memory:
        states = rng.normal(size=(BATCH, 1, memory, 8)).astype("float32")
        found |= {"memory": tf.constant(states), "memory_mask": tf.ones((BATCH, memory), tf.int32)}
    return found


def inputs_of_all_places(loss, given):
    """Returns the inputs of a model that computes its last layer for all places."""
    inputs = loss.inputs(given)
    inputs.pop("output_positions", None)
    return inputs


def gradients(model, objective, given, perturbation=None, training=True):
    """Returns the gradients of the sum of all losses, with that of a perturbation if given."""
    sources = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        inputs = objective.inputs(given)
        if perturbation is not None:
            tape.watch(perturbation)
            sources.append(perturbation)
            inputs = {**inputs, "embedding_perturbation": perturbation}
        losses = objective.losses(model(inputs, training=training, all_outputs=True), given)
        total = sum(mean.scale * mean.sum for mean in losses.values())
    found = tape.gradient(total, sources, unconnected_gradients="zero")
    return [tf.convert_to_tensor(gradient) for gradient in found], losses
