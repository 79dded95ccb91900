"""Optimizer steps and schedules against the TF1 originals (tests/golden)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import GOLDEN_MODELS, golden_batch, load_golden_model, total_loss

from nezha_tf import AdamWeightDecay, Lamb, warmup_linear_decay
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.optimization.schedules import WarmupPolynomialDecay
from nezha_tf.training.recipe import Recipe
from nezha_tf.training.step import TrainStep


@pytest.mark.parametrize("optimizer", ("lamb", "adamw"))
@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_five_steps(golden, name, optimizer):
    expected = golden(f"{name}/{optimizer}")
    batch = golden_batch(golden(f"{name}/forward"))
    model = load_golden_model(name)
    schedule = warmup_linear_decay(1e-3, num_train_steps=10, num_warmup_steps=3)
    instance = {"lamb": Lamb, "adamw": AdamWeightDecay}[optimizer](schedule)
    recipe = Recipe(instance)
    step = TrainStep(
        tf.distribute.get_strategy(), model, Bidirectional().loss(), recipe, training=False
    )
    for number in range(6):
        result = step.on_batch(batch)
        # Global norms and losses before the step.
        loss = total_loss({n: r for n, r in result.ratios.items() if n.endswith("_loss")})
        np.testing.assert_allclose(loss, expected["loss"][number], rtol=1e-5)
        np.testing.assert_allclose(result.gradient_norm, expected["global_norm"][number], rtol=1e-4)
        np.testing.assert_allclose(
            result.learning_rate, expected["learning_rate"][number], rtol=1e-6
        )
        for key, variable in tf1_names(model).items():
            if f"step{number + 1}/{key}" in expected:
                np.testing.assert_allclose(
                    variable, expected[f"step{number + 1}/{key}"], atol=1e-5, rtol=0, err_msg=key
                )


def test_lamb_of_the_paper(golden):
    figures = golden("ymcui_lamb")
    names = [key.removeprefix("init/") for key in figures if key.startswith("init/")]
    variables = [
        keras.Variable(figures[f"init/{key}"], name=key.replace("/", ".")) for key in names
    ]
    optimizer = Lamb(0.01, variant="paper", weight_decay_rate=0.01)
    for number in range(1, 6):
        gradients = [
            2 * (tf.convert_to_tensor(variable) - figures[f"target/{key}"])
            for key, variable in zip(names, variables, strict=True)
        ]
        for key, gradient in zip(names, gradients, strict=True):
            np.testing.assert_allclose(gradient, figures[f"grad{number}/{key}"], atol=1e-5)
        optimizer.apply(gradients, variables)
        for key, variable in zip(names, variables, strict=True):
            np.testing.assert_allclose(
                variable, figures[f"step{number}/{key}"], atol=1e-5, rtol=0, err_msg=key
            )


def test_lamb_where_a_gradient_is_zero():
    """NEZHA's LAMBOptimizer takes the ratio 1 where `g_norm`, of the gradient, is 0."""
    weights = keras.Variable([1.0, 0.0], name="kernel")
    optimizer = Lamb(0.1, weight_decay_rate=0.01)
    optimizer.apply([tf.zeros(2)], [weights])
    np.testing.assert_allclose(weights, [0.999, 0.0], rtol=1e-7)  # 1 - 0.1 * 1 * 0.01 * 1
    paper = Lamb(0.1, variant="paper", weight_decay_rate=0.01)
    paper.apply([tf.zeros(2)], [weights])
    np.testing.assert_allclose(weights, [0.999 - 0.1 * 0.999, 0.0], rtol=1e-6)
    # Moments of earlier gradients move the weights, also with the ratio 1.
    weights.assign([1.0, 0.0])
    m, v = (tf.constant([value, value]) for value in (0.01, 0.001))
    found, m, v, ratio = optimizer.moved(weights, tf.zeros(2), m, v, 0.1, 0, 0.01)
    step = np.float32(0.009 / 0.1) / (np.sqrt(0.000999 / 0.001) + 1e-6)
    assert ratio == 1
    np.testing.assert_allclose(found, [1 - 0.1 * (step + 0.01), -0.1 * step], rtol=1e-5)


def test_adamw_of_the_paper():
    rng = np.random.default_rng(5)
    start = rng.normal(size=(4, 3)).astype("float32")
    found, expected = keras.Variable(start, name="kernel"), keras.Variable(start, name="kernel")
    # The epsilon is negligible beside the moments: Keras adds it before the correction.
    settings = {"learning_rate": 0.05, "epsilon": 1e-12}
    ours = AdamWeightDecay(variant="paper", weight_decay_rate=0.1, **settings)
    keras_own = keras.optimizers.AdamW(weight_decay=0.1, **settings)
    for _ in range(20):
        gradient = tf.constant(rng.normal(size=(4, 3)).astype("float32"))
        ours.apply([gradient], [found])
        keras_own.apply([gradient], [expected])
        np.testing.assert_allclose(found, expected, atol=1e-6, rtol=0)
    assert np.abs(found - start).max() > 0.1


@pytest.mark.parametrize("variant", ("nezha", "bert"))
def test_schedule(golden, variant):
    expected = golden("schedule")[variant]
    schedule = warmup_linear_decay(1e-4, 1000, 100, variant)
    found = np.array([schedule(step) for step in range(1001)])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-11)


def test_schedule_with_power_meets_the_full_rate():
    schedule = WarmupPolynomialDecay(1e-3, 100, 20, power=0.5)
    np.testing.assert_allclose(schedule(20), 1e-3, rtol=1e-6)
    np.testing.assert_allclose(schedule(60) / schedule(20), np.sqrt(0.4 / 0.8), rtol=1e-6)


@pytest.mark.parametrize(
    "optimizer", (Lamb(variant="paper"), AdamWeightDecay(variant="paper", beta_2=0.98))
)
def test_serialisation(optimizer):
    optimizer.learning_rate = 0.25
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()


def test_serialisation_of_a_schedule():
    optimizer = Lamb(WarmupPolynomialDecay(1e-3, 100, 20, "bert", 2.0))
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    # A Keras optimizer keeps its schedule under this name.
    assert copy.get_config()["learning_rate"] == optimizer.get_config()["learning_rate"]
    assert copy.learning_rate.numpy() == optimizer.learning_rate.numpy() == 0.0
