"""The learned mixture of layers on a frozen encoder: NumPy, the law of one layer, gradients."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import random_batch
from toy_task import CONFIG

from nezha_tf import NezhaConfig, NezhaEncoder
from nezha_tf.checkpoints.name_table import tf1_name, tf1_names
from nezha_tf.modeling.finetuning import (
    NezhaForCrfTagging,
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.modeling.layers import LayerMix
from nezha_tf.modeling.pretraining import NezhaForMaskedLM

TWO_LAYERS = dataclasses.replace(
    NezhaConfig.from_dict(CONFIG), num_hidden_layers=2, position_encoding="learned_relative"
)
BATCH = random_batch(TWO_LAYERS, batch_size=3, length=7)
BATCH["label_mask"] = BATCH["input_mask"]
# The class, its arguments, and the prefixes of the names of what is trained beside the mixture.
MODELS = {
    "classification": (NezhaForSequenceClassification, (3,), ("bert/pooler/", "output_")),
    "albert_tagging": (NezhaForTokenClassification, (3,), ("output_",)),
    "crf_tagging": (NezhaForCrfTagging, (3,), ("output_", "crf/")),
    "reading_comprehension": (NezhaForQuestionAnswering, (), ("cls/squad/",)),
    "seq2seq": (NezhaForMaskedLM, (), ("bert/pooler/", "cls/predictions/")),
}


def new_model(name, **settings):
    keras.utils.set_random_seed(3)
    model_class, arguments, _ = MODELS[name]
    of_albert = {"embedding_size": 8, "num_hidden_groups": 1} if "albert" in name else {}
    return model_class(dataclasses.replace(TWO_LAYERS, **of_albert), *arguments, **settings)


def set_mix(mix, weights, gamma):
    mix.scores.assign(weights)
    mix.gamma.assign(gamma)


def results_of(model, training=False):
    """Returns {name: array} of the logits, and of the pooled output."""
    outputs = model(BATCH, training=training, all_outputs=True)
    names = [name for name in outputs if name.endswith("logits") or name == "pooled_output"]
    assert len(names) > 1
    return {name: outputs[name] for name in names}


def test_mixture_equals_numpy():
    mix, rng = LayerMix(4, name="mix"), np.random.default_rng(0)
    states = rng.normal(size=(4, 2, 5, 3)).astype(np.float32)
    # It begins as the plain mean.
    np.testing.assert_allclose(mix(list(states)), states.mean(axis=0), atol=1e-6)
    weights, gamma = rng.normal(size=4), 1.7
    set_mix(mix, weights, gamma)
    shares = np.exp(weights) / np.exp(weights).sum()
    expected = gamma * np.einsum("j,jbth->bth", shares, states)
    np.testing.assert_allclose(mix(list(states)), expected, atol=1e-6)
    names = ["embeddings", "layer_1", "layer_2", "layer_3", "gamma"]
    assert list(mix.values()) == names
    np.testing.assert_allclose(list(mix.values().values()), [*shares, gamma], atol=1e-6)


@pytest.mark.parametrize("pooled_only", (False, True))
def test_each_layer_can_be_chosen(pooled_only):
    """The mixture holds embeddings and layers in their order; the pooler reads it."""
    encoder = NezhaEncoder(TWO_LAYERS, pooled_only=pooled_only, layer_mix=True)
    for chosen in range(3):
        set_mix(encoder.mixture, 200 * np.eye(3)[chosen], 2.0)
        outputs = encoder(BATCH, all_outputs=True)
        states = [outputs["embedding_output"], *outputs["encoder_outputs"]]
        expected = 2 * states[chosen][:, : 1 if pooled_only else 7]
        np.testing.assert_array_equal(outputs["sequence_output"], expected)
        pooled = encoder.pooler(expected[:, 0])
        np.testing.assert_array_equal(outputs["pooled_output"], pooled)


@pytest.mark.parametrize("name", MODELS)
def test_all_weight_on_the_last_layer_is_the_model_without_a_mixture(name):
    plain, mixed = new_model(name), new_model(name, layer_mix=True)
    theirs = tf1_names(mixed)
    for key, variable in tf1_names(plain).items():
        theirs.pop(key).assign(variable)
    assert set(theirs) == {"layer_mix/weights", "layer_mix/gamma"}
    set_mix(mixed.encoder.mixture, [0.0, 0.0, 200.0], 1.0)
    expected = results_of(plain)
    for key, value in results_of(mixed).items():
        np.testing.assert_array_equal(value, expected[key])


@pytest.mark.parametrize("name", MODELS)
def test_mixture_and_head_alone_are_trained(name):
    """Even where a gradient of the encoder is asked for, there is none; it has no dropout."""
    model = new_model(name, layer_mix=True)
    with tf.GradientTape() as tape:
        tape.watch([variable.value for variable in model.weights])
        results = results_of(model, training=True)
        loss = sum(tf.reduce_sum(value**2) for value in results.values())
        if name == "crf_tagging":
            loss += tf.reduce_sum(model.crf.transitions.value)
            loss += tf.reduce_sum(model.crf.start.value + model.crf.end.value)
    gradients = tape.gradient(loss, [variable.value for variable in model.weights])
    words = "bert/embeddings/word_embeddings"
    moved = {
        tf1_name(variable.path): gradient
        for variable, gradient in zip(model.weights, gradients, strict=True)
        if gradient is not None
    }
    if name == "seq2seq":  # The head reads the frozen table of words, too.
        assert moved.pop(words) is not None
    of_head = MODELS[name][2]
    pooler = "bert/pooler/"  # Its output is among the results of each model.
    assert all(key.startswith(("layer_mix/", pooler, *of_head)) for key in moved)
    trained = {tf1_name(variable.path) for variable in model.trainable_variables}
    assert trained == {key for key in moved if not key.startswith(pooler) or pooler in of_head}
    assert all(np.any(moved[f"layer_mix/{part}"]) for part in ("weights", "gamma"))
    encoder = model.encoder
    one, other = (encoder(BATCH, training=True)["sequence_output"] for _ in range(2))
    np.testing.assert_array_equal(one, other)
