"""Forward pass, losses and gradients against the TF1 originals (tests/golden)."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import GOLDEN_MODELS, golden_batch, load_golden_model, total_loss
from objective_gradients import inputs_of_all_places

from nezha_tf import NezhaEncoder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.objectives.bert import Bidirectional


@pytest.mark.parametrize("are_all_computed", (False, True))
@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_outputs_losses_and_gradients(golden, name, are_all_computed):
    """In a run, the last layer computes the places that the loss reads."""
    figures, expected = golden(f"{name}/forward"), golden(f"{name}/gradients")
    batch = golden_batch(figures)
    model, objective = load_golden_model(name), Bidirectional().loss()
    variables = tf1_names(model)
    assert set(expected) == set(variables)
    inputs = objective.inputs(batch)
    if are_all_computed:
        inputs = inputs_of_all_places(objective, batch)
    with tf.GradientTape() as tape:
        outputs = model(inputs, all_outputs=True)
        losses = objective.losses(outputs, batch)
        total = total_loss(losses)
    found = {
        "embedding_output": outputs["embedding_output"],
        "layer_0": outputs["encoder_outputs"][0],
        "layer_1": outputs["encoder_outputs"][1],
        "sequence_output": outputs["sequence_output"],
        "pooled_output": outputs["pooled_output"],
        "masked_lm_log_probs": tf.reshape(tf.nn.log_softmax(outputs["masked_lm_logits"]), (60, -1)),
        "next_sentence_log_probs": tf.nn.log_softmax(outputs["next_sentence_logits"]),
        **{loss_name: loss.over(loss.weight) for loss_name, loss in losses.items()},
        "total_loss": total,
    }
    for key, value in found.items():
        figure = figures[f"out.{key}"]
        if key in ("layer_1", "sequence_output") and not are_all_computed:
            figure = np.take_along_axis(figure, inputs["output_positions"].numpy()[..., None], 1)
        np.testing.assert_allclose(value, figure, atol=2e-5, rtol=0, err_msg=key)
    gradients = tape.gradient(total, [variable.value for variable in variables.values()])
    for key, gradient in zip(variables, gradients, strict=True):
        # The softmax does not change if all keys' scores are shifted: with absolute positions the
        # gradient of their bias is only rounding error around 0, also in the original.
        tolerance = 1e-7 if key.endswith("key/bias") else 1e-4 * np.abs(expected[key]).max()
        gradient = tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(gradient, expected[key], atol=tolerance, rtol=0, err_msg=key)


def test_examples_that_are_no_pairs_have_the_masked_lm_loss_alone(golden):
    figures = golden("nezha_tiny/forward")
    batch = golden_batch(figures)
    model, objective = load_golden_model("nezha_tiny"), Bidirectional().loss(of_pairs=False)
    outputs = model(objective.inputs(batch), all_outputs=True)
    (name,), (loss,) = zip(*objective.losses(outputs, batch).items(), strict=True)
    assert name == "masked_lm_loss" and set(objective.loss_weights(batch)) == {name}
    np.testing.assert_allclose(loss.over(loss.weight), figures[f"out.{name}"], atol=2e-5, rtol=0)
    assert set(objective.metrics(outputs, batch)) == {"masked_lm_accuracy"}


def test_encoder_alone_and_attention_mask_of_rank_3(golden):
    figures = golden("nezha_tiny/forward")
    batch = golden_batch(figures)
    encoder = load_golden_model("nezha_tiny", NezhaEncoder)
    inputs = {key: batch[key] for key in ("input_ids", "input_mask", "segment_ids")}
    mask = tf.tile(tf.cast(batch["input_mask"], tf.bool)[:, None], [1, 160, 1])
    for given in (inputs, {**inputs, "attention_mask": mask}):
        output = encoder(given)["sequence_output"]
        np.testing.assert_allclose(output, figures["out.sequence_output"], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_the_first_token_alone_has_the_same_pooled_output_and_gradients(golden, name):
    figures = golden(f"{name}/forward")
    batch = golden_batch(figures)
    inputs = {key: batch[key] for key in ("input_ids", "input_mask", "segment_ids")}
    found = {}
    for pooled_only in (True, False):
        encoder = load_golden_model(name, NezhaEncoder)
        encoder.pooled_only = pooled_only
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, all_outputs=True)
            loss = tf.reduce_sum(outputs["pooled_output"] ** 3)
        np.testing.assert_allclose(
            outputs["pooled_output"], figures["out.pooled_output"], atol=2e-5, rtol=0
        )
        assert outputs["sequence_output"].shape[1] == (1 if pooled_only else 160)
        variables = [variable.value for variable in encoder.trainable_variables]
        found[pooled_only] = list(map(tf.convert_to_tensor, tape.gradient(loss, variables)))
    for one, other in zip(found[True], found[False], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5 * np.abs(other).max() + 1e-7, rtol=0)
