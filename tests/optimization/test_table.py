"""Each row of the tables of optimizers and schedules, and rows of other packages."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import REPOSITORY
from helpers import load_golden_model, random_batch
from schedule_courses import COURSES

from nezha_tf import NezhaConfig, NezhaForPreTraining
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.optimization import schedules, table
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.training import recipe as recipes
from nezha_tf.training.saving import training_state
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import UserError

CONFIG = NezhaConfig.from_dict(
    {**load_golden_model("nezha_tiny").config.to_dict(), "num_hidden_layers": 1}
)
BATCH = random_batch(CONFIG)
RATE, DECAY = 0.01, 0.1


def settings(**changes):
    given = {"learning_rate": RATE, "num_train_steps": 10, "num_warmup_steps": 0}
    return PretrainingSettings(**{**given, "do_train": True, "jit_compile": False, **changes})


def new_step(optimizer, replicas=1, **changes):
    """Returns (model, step) of a run with these settings, in float32."""
    given = settings(optimizer=optimizer, **changes)
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = NezhaForPreTraining(CONFIG)
        recipe = recipes.make(given, model, {})
        step = TrainStep(
            strategy,
            model,
            ObjectiveMixture.from_text("bidirectional").loss(of_pairs=True),
            recipe,
            training=False,
        )
    return model, recipe.optimizer, step


def weights_of(model):
    return {name: variable.numpy() for name, variable in tf1_names(model).items()}


# Runs with LAMB and AdamW are resumed in tests/training.
@pytest.mark.parametrize("optimizer", ("muon", "adafactor", "keras.RMSprop"))
def test_a_run_that_is_resumed_is_the_same(optimizer):
    """What `training_state` names is all that decides on later steps, bit by bit."""
    model, own, step = new_step(optimizer)
    start = weights_of(model)
    for _ in range(2):
        step.on_batch(BATCH)
    kept = {name: tf.identity(value) for name, value in training_state(model, own).items()}
    step.on_batch(BATCH)
    expected = weights_of(model)
    for name, variable in training_state(model, own).items():
        variable.assign(kept[name])
    step.on_batch(BATCH)
    for name, weights in weights_of(model).items():
        np.testing.assert_array_equal(weights, expected[name], name)
        assert (weights != start[name]).any(), name


def test_replicas_and_micro_batches_change_nothing():
    one, _, alone = new_step("muon")
    two, _, together = new_step("muon", replicas=2, gradient_accumulation_steps=2)
    half = len(BATCH["input_ids"]) // 2

    def part_of(context):
        first = context.replica_id_in_sync_group * half
        return {name: values[first : first + half] for name, values in BATCH.items()}

    parts = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    parts = parts.experimental_distribute_values_from_function(part_of)
    for _ in range(3):
        alone.on_batch(BATCH)
        together.on_batch(parts)
    expected = weights_of(one)
    for name, weights in weights_of(two).items():
        # The gradient of this bias is 0 but for rounding, and Adam makes steps of any gradient.
        if not name.endswith("key/bias"):
            np.testing.assert_allclose(weights, expected[name], atol=2e-5, err_msg=name)


def variables(*paths):
    """Returns variables of the given paths with known values; a matrix for each kernel."""
    rng = np.random.default_rng(0)
    made = []
    for path in paths:
        *scopes, name = path.split("/")
        shape = (6, 4) if name in ("kernel", "table") else (4,)
        with contextlib.ExitStack() as scope:
            for part in scopes:
                scope.enter_context(keras.name_scope(part, deduplicate=False))
            made.append(keras.Variable(rng.normal(size=shape).astype("float32"), name=name))
    return made


def made_and_stepped(optimizer, own, gradients, **changes):
    made = table.make_optimizer(settings(optimizer=optimizer, **changes), RATE)
    made.build(own)
    for gradient, variable in zip(gradients, own, strict=True):
        made.update_step(tf.constant(gradient), variable, RATE)
    return [variable.numpy() for variable in own]


def test_muon_is_for_matrices_of_layers():
    """By the definition of Newton-Schulz and of Adam, both at the first step."""
    own = variables("m/layer_0/kernel", "m/embeddings/table", "m/head/kernel", "m/layer_0/bias")
    before = [variable.numpy() for variable in own]
    rng = np.random.default_rng(1)
    gradients = [rng.normal(size=w.shape).astype("float32") for w in before]
    after = made_and_stepped("muon", own, gradients, weight_decay_rate=DECAY)
    # The first momentum is the gradient; Nesterov's is 1.95 of it, and its size does not matter.
    x = gradients[0].T / np.linalg.norm(gradients[0])
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    singular = np.linalg.svd(x, compute_uv=False)
    assert 0.6 < singular.min() and singular.max() < 1.3  # nearly orthogonal
    expected = before[0] * (1 - RATE * DECAY) - RATE * 0.2 * np.sqrt(6) * x.T
    np.testing.assert_allclose(after[0], expected, atol=2e-6)
    for index, decay in ((1, DECAY), (2, DECAY), (3, 0.0)):
        shrunk = before[index] * (1 - RATE * decay)
        np.testing.assert_allclose(
            after[index], shrunk - RATE * np.sign(gradients[index]), atol=2e-5
        )


def test_lion_by_its_definition():
    own = variables("m/layer_0/kernel")
    [start] = [variable.numpy() for variable in own]
    rng = np.random.default_rng(1)
    gradients = rng.normal(size=(3, *start.shape)).astype("float32")
    made = table.make_optimizer(settings(optimizer="lion", weight_decay_rate=DECAY), RATE)
    made.build(own)
    weights, momentum = start.astype("float64"), np.zeros(start.shape)
    for gradient in gradients:
        made.update_step(tf.constant(gradient), own[0], RATE)
        direction = np.sign(0.9 * momentum + 0.1 * gradient)
        weights = weights - RATE * (direction + DECAY * weights)
        momentum = 0.99 * momentum + 0.01 * gradient
        np.testing.assert_allclose(own[0], weights, atol=1e-6)
    [slot] = made.slots_of(own[0]).values()
    assert [*made.slots_of(own[0])] == ["lion_m"]
    np.testing.assert_allclose(slot, momentum, atol=1e-6)


def test_adafactor_is_that_of_keras():
    own, theirs = (variables("m/layer_0/kernel", "m/layer_0/bias") for _ in range(2))
    rng = np.random.default_rng(1)
    gradients = [rng.normal(size=variable.shape).astype("float32") for variable in own]
    made_and_stepped("adafactor", own, gradients, weight_decay_rate=0.0)
    peer = keras.optimizers.Adafactor(RATE, relative_step=False)
    peer.apply([tf.constant(gradient) for gradient in gradients], theirs)
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_rates_fall_from_layer_to_layer():
    """SGD moves each variable by its rate: layer_decay ** depth from the top."""
    own = variables("m/embeddings/table", "m/layer_0/kernel", "m/layer_1/kernel", "m/head/kernel")
    before = [variable.numpy() for variable in own]
    gradients = [np.ones(w.shape, np.float32) for w in before]
    after = made_and_stepped("keras.SGD", own, gradients, weight_decay_rate=0.0, layer_decay=0.5)
    rates = [np.mean(b - a) for a, b in zip(after, before, strict=True)]
    np.testing.assert_allclose(rates, RATE * np.array([1 / 16, 1 / 8, 1 / 4, 1]), rtol=1e-4)


@pytest.mark.parametrize(
    "name, message",
    [
        ("adam", "--optimizer=adam is unknown; there are lamb, adamw, muon, lion, adafactor, and"),
        ("keras.Adamm", "keras.optimizers has no optimizer 'Adamm'"),
        ("keras.schedules", "keras.optimizers has no optimizer 'schedules'"),
        ("keras.Nadam", "does not fit a run: it changes a product of all steps"),
        ("keras.ScheduleFreeAdamW", "begins with a copy of the weights"),
    ],
)
def test_what_is_no_optimizer_of_a_run(name, message):
    with pytest.raises(UserError, match=message):
        recipes.check(settings(optimizer=name))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_recipe_of_the_pages(monkeypatch, language):
    """Each weight moves by the rate."""
    page = (REPOSITORY / "docs" / language / "extending.md").read_text(encoding="utf-8")
    [code] = [block for block in page.split("```") if "class SignMomentum" in block]
    monkeypatch.setattr(table, "OPTIMIZERS", table.OPTIMIZERS.copy())
    exec(compile(code.removeprefix("python\n"), language, "exec"), {"__name__": language})
    if language == "zh":
        return
    model, _, step = new_step("sign", schedule="constant", weight_decay_rate=0.0)
    start = weights_of(model)
    step.on_batch(BATCH)
    for path, weights in weights_of(model).items():
        moved = np.abs(weights - start[path])
        np.testing.assert_allclose(moved[moved > 1e-6], RATE, rtol=1e-3, err_msg=path)
        assert (moved > 1e-6).any(), path


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_the_course_of_each_schedule(name):
    schedule = schedules.make_schedule(settings(schedule=name), 10, 4)
    copy = keras.optimizers.schedules.deserialize(keras.optimizers.schedules.serialize(schedule))
    for each in (schedule, copy):
        rates = [float(each(step)) / RATE for step in (0, 2, 4, 6, 8, 9, 10)]
        np.testing.assert_allclose(rates, COURSES[name], atol=1e-6)


def test_a_decay_that_begins_in_the_warmup():
    given = settings(schedule="trapezoid", num_warmup_steps=4, decay_proportion=0.7)
    with pytest.raises(UserError, match=r"--decay_proportion=0\.7 begins the decay in the warmup"):
        recipes.check(given)
    with pytest.raises(UserError, match="--schedule=linear is none of nezha, bert, cosine"):
        recipes.check(settings(schedule="linear"))
