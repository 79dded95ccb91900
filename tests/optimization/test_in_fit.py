"""The optimizers in Keras's own `fit`: golden figures, gradients of rows, scale, EMA, decay."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import golden_batch, load_golden_model, total_loss

from nezha_tf import AdamWeightDecay, Lamb, warmup_linear_decay
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.objectives.bert import Bidirectional

IDS = np.array([[1, 2, 2], [5, 0, 1]], "int32")


class LossOf(keras.Model):
    """A model whose output is the loss of another one, without dropout."""

    def __init__(self, model):
        super().__init__()
        self.model, self.objective = model, Bidirectional().loss()
        self.built = True

    def call(self, batch):
        outputs = self.model(self.objective.inputs(batch), all_outputs=True)
        return total_loss(self.objective.losses(outputs, batch))[None]


@pytest.mark.parametrize("name, optimizer", [("nezha_tiny", Lamb), ("bert_tiny", AdamWeightDecay)])
def test_steps_of_fit_are_the_originals(golden, name, optimizer):
    """Their programs clip the gradients together to the norm 1."""
    model = load_golden_model(name)
    schedule = warmup_linear_decay(1e-3, num_train_steps=10, num_warmup_steps=3)
    whole = LossOf(model)
    whole.compile(optimizer(schedule, global_clipnorm=1.0), loss=lambda _, output: output)
    batch = golden_batch(golden(f"{name}/forward"))
    data = tf.data.Dataset.from_tensors((batch, tf.zeros(1))).repeat(5)
    whole.fit(data, verbose=0)
    expected = golden(f"{name}/{'lamb' if optimizer is Lamb else 'adamw'}")
    compared = 0
    for key, variable in tf1_names(model).items():
        if f"step5/{key}" in expected:
            compared += 1
            np.testing.assert_allclose(variable, expected[f"step5/{key}"], atol=1e-5, err_msg=key)
    assert compared > 3


class Distance(keras.Model):
    """A model whose output is the square of the distance of its weights to those of a file."""

    def __init__(self, figures):
        super().__init__()
        names = [key.removeprefix("init/") for key in figures if key.startswith("init/")]
        self.targets = [figures[f"target/{name}"] for name in names]
        for name in names:
            weight = self.add_weight(
                shape=figures[f"init/{name}"].shape, name=name.replace("/", ".")
            )
            weight.assign(figures[f"init/{name}"])
        self.names, self.built = names, True

    def call(self, _):
        pairs = zip(self.weights, self.targets, strict=True)
        return sum(keras.ops.sum((weight - target) ** 2) for weight, target in pairs)[None]


@pytest.mark.parametrize("way", ("alone", "loss scale", "accumulated"))
def test_five_steps_of_the_papers_lamb(golden, way):
    """A scaled loss, and a mean of the gradients of two batches, give the same steps."""
    figures = golden("ymcui_lamb")
    model, count = Distance(figures), 2 if way == "accumulated" else 1
    options = {"gradient_accumulation_steps": 2} if way == "accumulated" else {}
    optimizer = Lamb(0.01, variant="paper", weight_decay_rate=0.01, **options)
    if way == "loss scale":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**10)
    model.compile(optimizer, loss=lambda _, output: output)
    data = tf.data.Dataset.from_tensors((tf.zeros(1), tf.zeros(1))).repeat(5 * count)
    model.fit(data, verbose=0)
    for name, weight in zip(model.names, model.weights, strict=True):
        np.testing.assert_allclose(weight, figures[f"step5/{name}"], atol=1e-5, err_msg=name)


def words(as_rows):
    """Returns a model that sums embeddings, whose gradients TensorFlow gives as rows or whole."""
    if as_rows:
        layers = [keras.layers.Embedding(7, 4)]
    else:
        layers = [
            keras.layers.Lambda(lambda ids: keras.ops.one_hot(keras.ops.cast(ids, "int32"), 7)),
            keras.layers.Dense(4, use_bias=False, name="embedding"),
        ]
    model = keras.Sequential([keras.Input((3,), dtype="int32"), *layers, keras.layers.Flatten()])
    model.set_weights([np.linspace(-1, 1, 28, dtype="float32").reshape(7, 4)])
    return model


@pytest.mark.parametrize("make", (Lamb, AdamWeightDecay))
def test_gradients_of_rows_are_those_of_the_whole_table(make):
    weights = []
    for as_rows in (True, False):
        model = words(as_rows)
        model.compile(make(0.1, exclude_from_weight_decay=()), loss="mse")
        model.fit(IDS, np.ones((2, 12)), epochs=3, verbose=0)
        weights.append(model.get_weights()[0])
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-6)


@pytest.mark.parametrize("name", ("weight_decay_rate", "weight_decay"))
def test_weights_decay_once_under_either_name(name):
    weight = keras.Variable([1.0, 1.0], name="kernel")
    optimizer = AdamWeightDecay(0.1, **{name: 0.5})
    optimizer.apply([np.zeros(2, "float32")], [weight])
    np.testing.assert_allclose(weight, 1 - 0.1 * 0.5)
    again = AdamWeightDecay.from_config(optimizer.get_config())
    assert again.weight_decay_rate == 0.5


def test_what_keras_excludes_does_not_decay():
    weights = [keras.Variable([1.0], name=name) for name in ("kernel", "table", "other")]
    optimizer = AdamWeightDecay(0.1, weight_decay_rate=0.5)
    optimizer.exclude_from_weight_decay(var_list=[weights[0]], var_names=["table"])
    optimizer.apply([np.zeros(1, "float32")] * 3, weights)
    np.testing.assert_allclose(np.concatenate(weights), [1, 1, 0.95])


def test_fit_ends_with_the_moving_average_of_the_weights():
    weights = []
    for num_steps, options in ((1, {}), (2, {}), (2, {"use_ema": True, "ema_momentum": 0.5})):
        model = words(True)
        model.compile(AdamWeightDecay(0.1, **options), loss="mse")
        data = tf.data.Dataset.from_tensors((IDS, np.ones((2, 12)))).repeat(num_steps)
        model.fit(data, verbose=0)
        weights.append(model.get_weights()[0])
    np.testing.assert_allclose(weights[2], (weights[0] + weights[1]) / 2, atol=1e-6)


def test_steps_of_bfloat16_weights_are_those_of_float32_but_for_rounding():
    found = []
    for dtype in ("float32", "bfloat16"):
        weight = keras.Variable([1.0, -2.0], dtype=dtype, name="kernel")
        optimizer = Lamb(0.1)
        for gradient in ([1.0, -1.0], [0.5, 1.0], [1.0, 2.0]):
            optimizer.apply([keras.ops.convert_to_tensor(gradient, dtype)], [weight])
        found.append(keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32")))
    np.testing.assert_allclose(found[1], found[0], atol=0.03)
