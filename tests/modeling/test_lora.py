"""Adapters: the formulas of arXiv 2106.09685 by NumPy, what is trained, and TF1's checkpoints."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import random_batch, tensors
from toy_task import CONFIG

import nezha_tf
from nezha_tf import NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.modeling.layers import Dense, product
from nezha_tf.modeling.lora import adapted_layers, adapters_of, enable_lora, is_adapter
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.util.errors import UserError

TWO_LAYERS = dataclasses.replace(NezhaConfig.from_dict(CONFIG), num_hidden_layers=2)
BATCH = random_batch(TWO_LAYERS, batch_size=3, length=7)
RANK, ALPHA = 3, 6.0
# By what differs in the configuration: the dense layers of a layer with its own weights, (inputs,
# outputs) of each, and the number of such layers.
WIDE, NARROW = (16, 32), (32, 16)
SIZES = {
    "bert": ({}, [(16, 16)] * 4 + [WIDE, NARROW], 2),
    "albert": (
        {"embedding_size": 8, "num_hidden_groups": 1},
        [(16, 16)] * 4 + [WIDE, NARROW],
        1,
    ),
    "modern": (
        {"feed_forward": "swiglu", "norm": "rms_norm", "norm_position": "pre", "use_bias": False},
        [(16, 16)] * 4 + [WIDE, WIDE, NARROW],
        2,
    ),
}


def new_model(model_class=NezhaForSequenceClassification, *arguments, **changes):
    keras.utils.set_random_seed(3)
    return model_class(dataclasses.replace(TWO_LAYERS, **changes), *arguments or (3,))


def adapt(model):
    """Gives a model adapters that change it."""
    enable_lora(model, RANK, ALPHA)
    rng = np.random.default_rng(0)
    for layer in adapted_layers(model):
        layer.lora_kernel_b.assign(rng.normal(size=layer.lora_kernel_b.shape) * 0.3)
    return model


@pytest.mark.parametrize("name", SIZES)
def test_the_number_of_trained_weights_is_that_of_the_formula(name):
    changes, shapes, count = SIZES[name]
    model = new_model(**changes)
    before = model(BATCH)
    frozen = {id(variable) for variable in model.weights}
    enable_lora(model, RANK)
    np.testing.assert_array_equal(model(BATCH), before)  # B begins at 0
    adapters = [variable for variable in model.trainable_variables if id(variable) not in frozen]
    assert all(map(is_adapter, adapters))
    found = sum(np.prod(variable.shape) for variable in adapters)
    assert found == count * sum(RANK * (inputs + outputs) for inputs, outputs in shapes)
    whole = {variable.path for variable in model.trainable_variables if id(variable) in frozen}
    head = [v.path for v in (*model.encoder.pooler.weights, *model.head.weights)]
    assert whole == set(head) and len(whole) == 4


def test_everything_trained_has_a_gradient():
    model = adapt(new_model())
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(BATCH) ** 2)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    for variable, gradient in zip(variables, gradients, strict=True):
        assert np.any(gradient), variable.path


def test_a_dense_layer_and_its_gradients_by_numpy_without_a_gradient_of_the_kernel():
    """Alone, and side by side with another; no product is as large as the kernel's gradient."""
    rng = np.random.default_rng(1)
    parts = [Dense(units) for units in (11, 5)]
    for part in parts:
        part.build((None, 7))
        part.enable_lora(RANK, lora_alpha=ALPHA)
        for variable in part.weights:
            variable.assign(rng.normal(size=variable.shape))
    inputs, upstream = (rng.normal(size=(2, 4, n)).astype("float32") for n in (7, 16))

    @tf.function
    def gradients(inputs, upstream):
        variables = [variable.value for part in parts for variable in adapters_of(part)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            made = product(inputs, parts)
        return made, tape.gradient(made, [inputs, *variables], upstream)

    made, (of_inputs, *found) = gradients(inputs, upstream)
    x, slopes = inputs.reshape(8, 7), np.split(upstream.reshape(8, 16), [11], axis=1)
    expected, rise = [], 0
    for part, dy in zip(parts, slopes, strict=True):
        w, a, b = (v.numpy() for v in (part._kernel, *adapters_of(part)))
        scale = ALPHA / RANK
        np.testing.assert_allclose(
            part(inputs), inputs @ (w + scale * a @ b) + part.bias.numpy(), rtol=1e-4, atol=1e-4
        )
        expected += [scale * x.T @ dy @ b.T, scale * (x @ a).T @ dy]
        rise = rise + dy @ (w + scale * a @ b).T
    both = np.concatenate([part(inputs) - part.bias for part in parts], axis=-1)
    np.testing.assert_allclose(made, both, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(of_inputs, rise.reshape(2, 4, 7), rtol=1e-4, atol=1e-4)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    graph = gradients.get_concrete_function(inputs, upstream).graph
    shapes = [tuple(n.outputs[0].shape) for n in needed(graph) if "MatMul" in n.type]
    assert len(shapes) > 6 and not {(7, 16), (7, 11), (7, 5)} & set(shapes)


def needed(graph):
    """Returns the operations of a function's graph that its results depend on."""
    found, left = {}, [tensor.op for tensor in graph.outputs]
    while left:
        operation = left.pop()
        if operation.name not in found:
            found[operation.name] = operation
            left += [*operation.control_inputs, *(tensor.op for tensor in operation.inputs)]
    return found.values()


@pytest.mark.parametrize("name", SIZES)
def test_writing_in_tf1_names_merges_by_numpy_and_reading_is_the_base(name, tmp_path):
    changes = SIZES[name][0]
    base = new_model(**changes)
    checkpoints.save_tf1_checkpoint(base, str(tmp_path / "base"))
    model = adapt(new_model(**changes))
    logits = model(BATCH).numpy()
    assert np.abs(logits - base(BATCH)).max() > 0.01
    checkpoints.save_tf1_checkpoint(model, str(tmp_path / "merged"))
    plain, found = tensors(tmp_path / "base"), tensors(tmp_path / "merged")
    assert found.keys() == plain.keys()
    changed = {}
    for layer in adapted_layers(model):
        a, b = layer.lora_kernel_a.numpy(), layer.lora_kernel_b.numpy()
        own = [key for key, value in tf1_names(model).items() if value is layer._kernel]
        changed[own[0]] = plain[own[0]] + ALPHA / RANK * a @ b
    for key, value in found.items():
        expected = changed.get(key, plain[key])
        np.testing.assert_allclose(value, expected, atol=1e-6 if key in changed else 0, err_msg=key)
    other = new_model(**changes)
    checkpoints.load(other, str(tmp_path / "merged"))
    np.testing.assert_allclose(other(BATCH), logits, atol=1e-5)

    # A model with adapters becomes the one of the checkpoint; its adapters begin anew.
    checkpoints.load_tf1_checkpoint(model, str(tmp_path / "base"))
    for key, variable in tf1_names(model).items():
        np.testing.assert_array_equal(variable.numpy(), plain[key], err_msg=key)
    np.testing.assert_array_equal(model(BATCH), base(BATCH))
    assert all(np.any(layer.lora_kernel_a) for layer in adapted_layers(model))


def test_adapters_saved_alone_give_the_model_with_their_base(tmp_path):
    base = str(tmp_path / "base")
    checkpoints.save_tf1_checkpoint(new_model(), base)
    model, prefix = adapt(new_model()), str(tmp_path / "own" / "task")
    with pytest.raises(UserError, match=r"^the model has no adapters to save"):
        checkpoints.save_adapters(new_model(), prefix, base)
    with pytest.raises(UserError, match=r"of the model is not that of \S+; name the model's own"):
        checkpoints.save_adapters(adapt(other_model()), prefix, base)
    assert not (tmp_path / "own").exists()
    checkpoints.save_adapters(model, prefix, base)
    own = set(tensors(prefix))
    trained = 2 * len(adapted_layers(model)) + 4
    assert len(own) == trained + 1  # the table of segments
    for made in (other_model(), adapt(other_model())):
        checkpoints.load(made, prefix)
        np.testing.assert_allclose(made(BATCH), model(BATCH), atol=1e-5)


def other_model():
    keras.utils.set_random_seed(4)
    return NezhaForSequenceClassification(TWO_LAYERS, 3)


def test_half_precision_is_near():
    whole = adapt(new_model())
    half = NezhaForSequenceClassification(TWO_LAYERS, 3, dtype="mixed_bfloat16")
    enable_lora(half, RANK, ALPHA)
    half.set_weights(whole.get_weights())
    assert {variable.dtype for variable in half.trainable_variables} == {"float32"}
    np.testing.assert_allclose(half(BATCH), whole(BATCH), atol=0.05)


def test_a_head_on_words_and_mistakes():
    model = nezha_tf.load("mini")[1]
    enable_lora(model, 2)
    words = model.encoder.embeddings.word_embeddings
    assert not words.trainable and any(v is words for v in model.weights)
    for wrong in (lambda: enable_lora(model, 2), lambda: enable_lora(model.encoder, 2)):
        with pytest.raises(UserError, match="has adapters already"):
            wrong()
    for rank, alpha in ((0, None), (-1, 3), (2, 0), (2, -1.5), (2, float("nan"))):
        with pytest.raises(UserError, match=f"above 0, not {rank} and"):
            enable_lora(new_model(), rank, alpha)
    mixed = NezhaForMaskedLM(TWO_LAYERS, layer_mix=True)
    with pytest.raises(UserError, match="layer_mix freezes the layers"):
        enable_lora(mixed, 2)
    encoder = NezhaEncoder(TWO_LAYERS)
    enable_lora(encoder, 2)
    assert len(adapted_layers(encoder)) == 12
