"""What tests/modeling/test_on_jax.py has checked in the process of jax_server.py."""

import collections
import importlib
import math
import pathlib
import pkgutil
import re
import sys

import jax
import numpy as np

import nezha_tf
from nezha_tf.modeling.finetuning import NezhaForCrfTagging
from nezha_tf.modeling.lora import enable_lora
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.optimization.clipping import clip_by_global_norm, global_norm
from nezha_tf.tasks.classification.loss import MultiLabelLoss
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss
from nezha_tf.util.errors import UserError


def rooms_of_keras_alone():
    for module in ("bert", "losses", "objective", "policies", "terms"):
        importlib.import_module(f"nezha_tf.objectives.{module}")
    for room in ("modeling", "optimization"):
        package = importlib.import_module(f"nezha_tf.{room}")
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)


def values_of(model):
    """Returns the values of the trainable and of the other variables."""
    groups = (model.trainable_variables, model.non_trainable_variables)
    return tuple([variable.value for variable in group] for group in groups)


def arrays_with(prefix, arrays):
    """Returns the arrays of a dict whose names begin so, in their order."""
    return [array for name, array in sorted(arrays.items()) if name.startswith(prefix)]


def model_loss_and_optimizer(model_folder, weights):
    """Against the original's loss and norm; then the optimizer makes a step."""
    config = nezha_tf.NezhaConfig.from_json_file(model_folder + "/bert_config.json")
    model = nezha_tf.NezhaForPreTraining(config)
    model.set_weights(arrays_with("", dict(np.load(weights))))
    figures = np.load(model_folder + "/forward.npz")
    batch = {key[3:]: figures[key] for key in figures if key.startswith("in.")}
    objective = Bidirectional().loss()
    trainable, others = values_of(model)

    def loss_of(trainable):
        outputs, _ = model.stateless_call(trainable, others, objective.inputs(batch))
        losses = objective.losses(outputs, batch).values()
        return sum(loss.over(loss.weight) for loss in losses)

    loss, gradients = jax.jit(jax.value_and_grad(loss_of))(trainable)
    expected = np.load(model_folder + "/lamb.npz")
    assert abs(loss - expected["loss"][0]) < 2e-5, loss
    gradients, norms = clip_by_global_norm(gradients, 1.0)
    norm = global_norm(norms)
    assert abs(norm - expected["global_norm"][0]) < 1e-4, norm
    optimizer = nezha_tf.Lamb(nezha_tf.warmup_linear_decay(1e-3, 10, 3))
    optimizer.build(model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    assert int(optimizer.iterations) == 1


def multi_label_loss():
    zeros = np.zeros((2, 3), "float32")
    labels = {"input_mask": np.ones((2, 4), int), "label_ids": np.zeros((2, 3), int)}
    [loss] = MultiLabelLoss().losses({"logits": zeros}, labels).values()
    assert abs(loss.over(loss.weight) - np.log(2)) < 1e-6, loss


def exports_without_a_length_are_refused():
    model = nezha_tf.NezhaForMaskedLM(nezha_tf.NezhaConfig(vocab_size=8, num_hidden_layers=1))
    try:
        model.export("never_written")
    except UserError as error:
        assert "length" in str(error), error
    else:
        raise AssertionError("a model was exported without a length")


def encoder_outputs(path):
    """Against outputs of TensorFlow in the file, with all tokens and for the first alone."""
    given = dict(np.load(path))
    config = nezha_tf.NezhaConfig.from_json_file(path + ".json")
    inputs = {name[3:]: value for name, value in given.items() if name.startswith("in.")}
    for pooled_only in (False, True):
        encoder = nezha_tf.NezhaEncoder(config, pooled_only=pooled_only)
        encoder.set_weights(arrays_with("weight", given))
        outputs, _ = jax.jit(encoder.stateless_call)(*values_of(encoder), inputs)
        difference = np.abs(outputs["pooled_output"] - given["out"]).max()
        assert difference < 2e-5, (path, pooled_only, difference)


def adapted_encoder(path):
    """Against the output of TensorFlow in the file; and each adapter has a gradient."""
    given = dict(np.load(path))
    encoder = nezha_tf.NezhaEncoder(nezha_tf.NezhaConfig.from_json_file(path + ".json"))
    enable_lora(encoder, 2, 6.0)
    encoder.set_weights(arrays_with("weight", given))
    inputs = {name[3:]: value for name, value in given.items() if name.startswith("in.")}
    trainable, others = values_of(encoder)

    def sum_of(trainable):
        pooled = encoder.stateless_call(trainable, others, inputs)[0]["pooled_output"]
        return pooled.sum(), pooled

    (_, pooled), gradients = jax.jit(jax.value_and_grad(sum_of, has_aux=True))(trainable)
    assert np.abs(pooled - given["out"]).max() < 2e-5
    # A and B of the dense layers, kernel and bias of the pooler.
    assert len(gradients) == 6 * encoder.config.num_hidden_layers * 2 + 2
    assert all(map(np.any, gradients))


def crf(path, made):
    """Writes the loss of a tagging model with a CRF, its predictions and gradients to a file."""
    given = dict(np.load(path))
    config = nezha_tf.NezhaConfig.from_json_file(path + ".json")
    model = NezhaForCrfTagging(config, 3)
    model.set_weights(arrays_with("weight", given))
    batch = {name[3:]: value for name, value in given.items() if name.startswith("in.")}
    objective = CrfTaggingLoss()
    trainable, others = values_of(model)

    def loss_of(trainable):
        inputs = objective.inputs(batch)
        outputs, _ = model.stateless_call(trainable, others, inputs, all_outputs=True)
        loss = objective.losses(outputs, batch)["tagging_loss"]
        return loss.over(loss.weight), objective.predictions(outputs)

    (loss, found), gradients = jax.jit(jax.value_and_grad(loss_of, has_aux=True))(trainable)
    gradients = {f"gradient.{i:03}": gradient for i, gradient in enumerate(gradients)}
    np.savez(made, loss=loss, **found, **gradients)


def gpu_benchmark():
    """The benchmark's step in bfloat16 at a tiny size, and the arithmetic of its table."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "benchmarks"))
    gpu_throughput = importlib.import_module("gpu_throughput")
    size = importlib.import_module("contenders").Size(1, 16, 2, 32, 12, 4, 3, 50)
    losses = []

    def make():
        step, wait, peak = gpu_throughput.make_our_step(size, "bfloat16", "functional_relative")
        return lambda: losses.append(step()), wait, peak

    found = gpu_throughput.measure(3, 2, make)
    assert found.seconds.shape == (3,) and found.seconds.min() > 0, found
    assert len(losses) == 8 and len(set(map(float, losses))) == 8, losses
    # Small random weights know nothing of 50 tokens and of two answers.
    assert abs(losses[0] - math.log(50) - math.log(2)) < 0.2, losses[0]
    update, state = gpu_throughput.our_update(size, "float32", "absolute")
    batch = importlib.import_module("contenders").random_batch(size)
    (trainable, _, _), _ = jax.jit(update)(state, batch)
    # AdamW's first step without correction of the bias is 0.1 g / sqrt(0.001 g^2), wherever |g| is
    # far above epsilon; the bias of the masked-LM head does not decay.
    moved = max(
        np.abs(new - old).max()
        for new, old in zip(trainable, state[0], strict=True)
        if old.shape == (50,)
    )
    assert abs(moved / (1e-4 * 0.1 / math.sqrt(0.001)) - 1) < 0.01, moved
    table_row(gpu_throughput, size)


def lowered_for_accelerators(policy, product_dtype, encoding):
    """A whole training step becomes a program for GPU and TPU, with nothing that those lack."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "benchmarks"))
    contenders = importlib.import_module("contenders")
    size = contenders.Size(1, 16, 2, 32, 12, 4, 3, 50)
    update, state = importlib.import_module("gpu_throughput").our_update(size, policy, encoding)
    program = jax.export.export(jax.jit(update), platforms=("cuda", "tpu"))
    text = program(state, contenders.random_batch(size)).mlir_module()
    assert "f64" not in text  # TPUs have no float64, and GPUs are slow at it
    assert "?x" not in text and "x?" not in text and "<?" not in text  # shapes are static
    assert "custom_call" not in text  # nothing needs a library of one platform, or the host
    products = re.findall(r"stablehlo\.dot_general.*-> tensor<[^>]*x(\w+)>", text)
    # For both devices, only the head of next sentence: its scores and their two gradients.
    counts = collections.Counter(products)
    assert counts.pop(product_dtype) > 50 and counts == {"f32": 2 * 3}, counts


def table_row(gpu_throughput, size):
    from nezha_tf.modeling.flops import training_flops

    config = importlib.import_module("contenders").our_config(size)
    flops = 4 * training_flops(config, 12, 3)
    ours = gpu_throughput.Measured(np.array([0.1, 0.2, 0.4]), None)
    other = gpu_throughput.Measured(np.array([0.8, 0.8, 0.8]), 2_500_000_000)
    arguments = (flops * 10, flops * 50 / 1e12)
    rows = [
        gpu_throughput.row(size, "functional_relative", found, ours, *arguments)
        for found in (ours, other)
    ]
    assert rows[0][1:] == ["240", "50.0%", "10.0%", "", "1.00"], rows[0]
    assert rows[1][1:] == ["60", "12.5%", "2.5%", "2.5", "4.00"], rows[1]
