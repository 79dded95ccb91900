"""The two streams of a permutation LM: what each depends on, and each prediction by itself."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from objective_gradients import inputs_of_all_places
from small_encoders import narrow_config

from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.pretraining import NezhaForPermutationLM
from nezha_tf.objectives.table import OBJECTIVES

LENGTH, PREDICTIONS = 9, 4
# The ranks of two examples with [CLS] and [SEP] in the order; the second ends with padding.
RANKS = np.array([[5, 0, 9, 0, 2, 0, 7, 1, 8], [3, 0, 1, 6, 0, 4, 2, 9, 8]])
NUM_TOKENS = (9, 7)
PLACES = np.array([[2, 4, 6, 7], [2, 3, 5, 0]])
NUM_PREDICTED = (4, 3)


@functools.cache
def model_of(encoding, **sizes):
    keras.utils.set_random_seed(0)
    sizes = {"num_hidden_layers": 2, "max_position_embeddings": LENGTH, **sizes}
    return NezhaForPermutationLM(narrow_config(encoding, **sizes))


def batch():
    rng = np.random.default_rng(1)
    input_mask = (np.arange(LENGTH) < np.array(NUM_TOKENS)[:, None]).astype("int32")
    weights = np.arange(PREDICTIONS) < np.array(NUM_PREDICTED)[:, None]
    return {
        "input_ids": tf.constant(rng.integers(5, 30, (2, LENGTH)) * input_mask, tf.int32),
        "input_mask": tf.constant(input_mask),
        "segment_ids": tf.constant((np.arange(LENGTH) > 4) * input_mask, tf.int32),
        "masked_lm_positions": tf.constant(PLACES, tf.int32),
        "masked_lm_ids": tf.constant(rng.integers(5, 30, (2, PREDICTIONS)), tf.int32),
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "permutation_ranks": tf.constant(RANKS, tf.int32),
    }


def loss():
    return OBJECTIVES["permutation"].loss(of_pairs=False)


def test_each_stream_depends_on_what_it_may_see():
    """By gradients through two layers: exactly zero where the order forbids it."""
    model, inputs = model_of("functional_relative"), inputs_of_all_places(loss(), batch())
    encoder = model.encoder

    @tf.function(autograph=False)
    def jacobians():
        with tf.GradientTape(persistent=True) as tape:
            outputs = encoder(inputs, all_outputs=True)
            queries = encoder.query_stream(model.query_embedding, inputs, outputs)
        return [
            tf.reduce_max(tf.abs(tape.batch_jacobian(states, outputs["embedding_output"])), (2, 4))
            for states in (outputs["sequence_output"], queries)
        ]

    of_tokens, of_queries = (found.numpy() for found in jacobians())
    for row in range(2):
        tokens = range(NUM_TOKENS[row])
        for output in tokens:
            for given in range(LENGTH):
                may = given in tokens and (RANKS[row, given] <= RANKS[row, output])
                slope = of_tokens[row, output, given]
                assert slope > 1e-6 if may else slope == 0, (row, output, given)
        for number in range(NUM_PREDICTED[row]):
            for given in range(LENGTH):
                below = RANKS[row, given] < RANKS[row, PLACES[row, number]]
                slope = of_queries[row, number, given]
                may = given in tokens and below
                assert slope > 1e-6 if may else slope == 0, (row, number, given)


@pytest.mark.parametrize(
    "encoding, sizes",
    [*((encoding, ()) for encoding in POSITION_ENCODINGS), ("absolute", ("embedding_size",))],
)
def test_each_prediction_is_that_of_a_pass_with_its_visible_tokens_alone(encoding, sizes):
    """A pass for each target: the tokens that rank below it, a query, and nothing else."""
    model = model_of(encoding, **dict.fromkeys(sizes, 6))
    given = batch()
    inputs = loss().inputs(given)
    found = model(inputs)["masked_lm_logits"]
    for row in range(2):
        for number in range(NUM_PREDICTED[row]):
            place = PLACES[row, number]
            seen = np.flatnonzero(RANKS[row, : NUM_TOKENS[row]] < RANKS[row, place])
            # Tokens that are left out do not exist; those that are left keep their positions.
            alone = {
                name: tf.gather(given[name][row : row + 1], seen, axis=1)
                for name in ("input_ids", "input_mask", "segment_ids")
            }
            ranks = RANKS[row, seen]
            alone["attention_mask"] = (ranks[None, :] <= ranks[:, None])[None, None]
            alone["position_ids"] = tf.constant(seen, tf.int32)
            outputs = model.encoder(alone, all_outputs=True)
            query = _query_of(model, outputs, place, given["segment_ids"][row, place], seen)
            table = model.encoder.embeddings.word_embeddings
            logits = model.masked_lm.logits(query, table)
            np.testing.assert_allclose(logits[0, 0], found[row, number], atol=2e-5)


def _query_of(model, outputs, place, segment_id, seen):
    """Returns the state of a query at a place that sees all tokens of `outputs`, [1, 1, D]."""
    encoder = model.encoder
    places = tf.constant([[place]], tf.int32)
    vector = tf.reshape(tf.convert_to_tensor(model.query_embedding), (1, 1, -1))
    states = encoder.embeddings(places, tf.reshape(segment_id, (1, 1)), places, vectors=vector)
    positions = encoder.positions.between(places, tf.constant(seen, tf.int32))
    mask = tf.ones((1, 1, 1, len(seen)), tf.bool)
    for layer, pair in zip(encoder.transformer_layers, outputs["keys_and_values"], strict=True):
        states, _ = layer(
            states,
            attention_mask=mask,
            positions=positions,
            past_key_values=(pair,),
            has_own_keys=False,
        )
    return states


def test_the_query_vector_and_the_layers_learn_from_predictions():
    model, objective, given = model_of("rotary"), loss(), batch()
    with tf.GradientTape() as tape:
        losses = objective.losses(model(objective.inputs(given), all_outputs=True), given)
        total = sum(mean.over(mean.weight) for mean in losses.values())
    names = [variable.path for variable in model.trainable_variables]
    gradients = dict(zip(names, tape.gradient(total, model.trainable_variables), strict=True))
    [own] = [gradient for name, gradient in gradients.items() if name.endswith("query_embedding")]
    assert float(tf.norm(own)) > 1e-6
    assert all(float(tf.norm(v)) > 0 for n, v in gradients.items() if n.endswith("query/kernel"))
