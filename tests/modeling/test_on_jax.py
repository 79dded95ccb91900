"""Where there is no TensorFlow: model, losses and optimizers on JAX, all in one other process."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN, REPOSITORY
from helpers import load_golden_model
from small_crf import CONFIG, L, make_batch
from small_encoders import SIZES, batch_of
from waiting import TIME_LIMIT, read_line

from nezha_tf import NezhaConfig, NezhaEncoder
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.finetuning import NezhaForCrfTagging
from nezha_tf.modeling.lora import adapted_layers, enable_lora
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss

pytestmark = pytest.mark.processes
XLA_FLAGS = "--xla_backend_optimization_level=0"  # JAX's XLA knows fewer than TensorFlow's


@pytest.fixture(scope="module")
def on_jax():
    """Returns a function: name of a check of jax_checks.py, arguments; it fails as the check does.

    The process starts at once and imports JAX while a test computes what it compares with.
    """
    process = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "tests" / "jax_server.py")],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": XLA_FLAGS},
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def check(name, *arguments):
        print(json.dumps((name, arguments)), file=process.stdin, flush=True)
        answer = read_line(process.stdout)
        assert answer, f"the process on JAX is gone: {process.poll()}"
        failure = json.loads(answer)
        assert failure is None, failure

    yield check
    process.stdin.close()
    assert process.wait(TIME_LIMIT) == 0


def test_model_loss_and_optimizer_run_where_there_is_no_tensorflow(on_jax, tmp_path):
    """The original's loss and norm; and all modules of the rooms of Keras alone are imported."""
    weights = str(tmp_path / "weights.npz")
    values = load_golden_model("nezha_tiny").get_weights()
    np.savez(weights, **{f"{index:03}": value for index, value in enumerate(values)})
    on_jax("rooms_of_keras_alone")
    on_jax("model_loss_and_optimizer", str(GOLDEN / "nezha_tiny"), weights)
    on_jax("multi_label_loss")
    on_jax("exports_without_a_length_are_refused")


def save_inputs(path, config, model, inputs, **others):
    """Writes what a check reads to `path`, and the configuration beside it."""
    config.to_json_file(f"{path}.json")
    weights = {f"weight.{i:03}": value for i, value in enumerate(model.get_weights())}
    np.savez(path, **{f"in.{name}": value for name, value in inputs.items()}, **weights, **others)


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_every_position_encoding_is_the_same_on_jax(on_jax, tmp_path, encoding):
    """At the positions 0 to T-1, at given ones, beyond the distances of the table, and packed."""
    settings = {"position_encoding": encoding, "max_relative_position": 4}
    if encoding == "absolute":  # whose default layers are compared with the original's on JAX
        settings |= {"norm_position": "pre", "norm": "rms_norm"}
        settings |= {"feed_forward": "geglu", "use_bias": False}
    encoder = NezhaEncoder(NezhaConfig(**SIZES, **settings, initializer_range=0.3))
    plain = batch_of(30)
    text_ids = (1 + np.arange(30) // 8) * plain["input_mask"]
    for name, values in (
        ("input_ids", plain["input_ids"]),
        ("position_ids", np.arange(30, 60, dtype="int32")),
        ("text_ids", text_ids.astype("int32")),
    ):
        inputs = {**plain, name: values}
        path = str(tmp_path / f"{name}.npz")
        out = encoder(inputs)["pooled_output"]
        save_inputs(path, encoder.config, encoder, inputs, out=out)
        on_jax("encoder_outputs", path)


def test_adapters_are_the_same_on_jax(on_jax, tmp_path):
    encoder = NezhaEncoder(NezhaConfig(**SIZES, initializer_range=0.3))
    enable_lora(encoder, 2, 6.0)
    for number, layer in enumerate(adapted_layers(encoder)):
        layer.lora_kernel_b.assign(np.full(layer.lora_kernel_b.shape, 0.1 * (-1) ** number))
    inputs, path = batch_of(9), str(tmp_path / "adapted.npz")
    out = encoder(inputs)["pooled_output"]
    save_inputs(path, encoder.config, encoder, inputs, out=out)
    on_jax("adapted_encoder", path)


def test_the_crf_is_the_same_on_jax(on_jax, tmp_path):
    """The same loss, gradients and path."""
    model = NezhaForCrfTagging(CONFIG, L)
    batch, objective = make_batch(), CrfTaggingLoss()
    rng = np.random.default_rng(0)
    for variable in model.crf.weights:
        variable.assign(rng.normal(size=variable.shape) * 2)
    with tf.GradientTape() as tape:
        outputs = model(objective.inputs(batch), all_outputs=True)
        loss = objective.losses(outputs, batch)["tagging_loss"]
        loss = loss.over(loss.weight)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    found = objective.predictions(outputs)
    given, made = str(tmp_path / "given.npz"), str(tmp_path / "made.npz")
    save_inputs(given, CONFIG, model, batch)
    on_jax("crf", given, made)
    on_jax_found = dict(np.load(made))
    assert on_jax_found["loss"] == pytest.approx(float(loss), abs=1e-5)
    np.testing.assert_array_equal(on_jax_found["tag_ids"], found["tag_ids"])
    np.testing.assert_allclose(on_jax_found["probabilities"], found["probabilities"], atol=1e-5)
    for number, gradient in enumerate(gradients):
        theirs = on_jax_found[f"gradient.{number:03}"]
        np.testing.assert_allclose(theirs, tf.convert_to_tensor(gradient), atol=1e-5)


@pytest.mark.parametrize(
    "policy, product_dtype, encoding",
    [
        ("mixed_bfloat16", "bf16", "functional_relative"),
        ("mixed_float16", "f16", "rotary"),
    ],
)
def test_a_step_is_lowered_for_gpu_and_tpu(on_jax, policy, product_dtype, encoding):
    """JAX writes programs for devices that this machine does not have."""
    on_jax("lowered_for_accelerators", policy, product_dtype, encoding)


def test_the_benchmark_of_gpus_runs_without_one(on_jax):
    on_jax("gpu_benchmark")
