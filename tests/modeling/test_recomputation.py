"""Layers that compute their inside again: the gradients of layers that keep it, bit by bit.

The comparisons are in eager mode, because compilers add up in another order when a graph differs.
"""

import importlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from objective_gradients import BATCH, LENGTH, batch, gradients
from small_encoders import SIZES, narrow_config

from nezha_tf import NezhaConfig
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.encoder import TransformerLayer
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.modeling.positions.base import AttentionPositions
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.tasks.classification.loss import ClassificationLoss
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.training.recipe import recompute_layers
from nezha_tf.training.step import gradients_of_both


def model_of(objectives, config, recompute, dtype="float32"):
    keras.utils.set_random_seed(3)
    mixture = ObjectiveMixture.from_text(objectives)
    return with_recomputation(mixture.model(config, dtype=dtype), recompute), mixture.loss(False)


def with_recomputation(model, recompute):
    if recompute:
        recompute_layers(model)
    return model


def assert_same(model_and_gradients):
    """Compares two results of a function of `recompute`: gradients, and the states of dropout.

    Two passes, so that the second one begins where the first one left the seeds.
    """
    results = []
    for recompute in (False, True):
        model, compute = model_and_gradients(recompute)
        found = [*compute(), *compute()]
        results.append([g.numpy() for g in found] + [v.numpy() for v in model.weights])
    assert len(results[0]) > 20
    for kept, again in zip(*results, strict=True):
        np.testing.assert_array_equal(again, kept)


def assert_same_objectives(objectives, config, given, dtype="float32"):
    def model_and_gradients(recompute):
        model, loss = model_of(objectives, config, recompute, dtype)
        return model, lambda: gradients(model, loss, given)[0]

    assert_same(model_and_gradients)


def config_of(encoding="functional_relative", **changes):
    # Distances beyond the table, so that its ends count, too.
    sizes = {"num_hidden_layers": 1, "max_position_embeddings": LENGTH, **changes}
    return narrow_config(encoding, **sizes)


@pytest.fixture
def own_encoding(monkeypatch):
    """A position encoding with weights that the attention does not read as variables."""
    monkeypatch.setitem(POSITION_ENCODINGS, "linear_bias", None)
    monkeypatch.delitem(sys.modules, "linear_bias", raising=False)
    importlib.import_module("linear_bias")


@pytest.mark.parametrize("encoding", [*POSITION_ENCODINGS, "linear_bias"])
def test_gradients_for_each_encoding(encoding, own_encoding):
    assert_same_objectives("bidirectional", config_of(encoding, num_hidden_layers=2), batch())


@pytest.mark.parametrize("dtype", ("mixed_float16", "mixed_bfloat16"))
def test_gradients_in_half_precision(dtype):
    assert_same_objectives("bidirectional", config_of("learned_relative"), batch(), dtype)


def test_gradients_of_layers_that_share_weights():
    sizes = {"num_hidden_groups": 1, "embedding_size": 6, "num_hidden_layers": 2}
    assert_same_objectives("bidirectional", config_of(**sizes), batch())


@pytest.mark.parametrize("objectives", ("causal", "permutation"))
def test_gradients_with_a_memory_and_a_query_stream(objectives):
    assert_same_objectives(objectives, config_of("rotary"), batch(memory=4))


def test_gradients_of_a_generator_beside_the_model():
    sizes = {"num_attention_heads": 4, "intermediate_size": 12}
    config = config_of("absolute", **sizes)
    assert_same_objectives("bidirectional,replaced_tokens", config, batch())


def test_gradients_of_r_drop_and_an_adversarial_pass():
    """The perturbation itself is made of a gradient that goes through the layers."""
    objective, given = RDrop(ClassificationLoss(), 2.0), batch()

    def model_and_gradients(recompute):
        keras.utils.set_random_seed(3)
        model = NezhaForSequenceClassification(config_of(), 2)

        def one_pass(perturbation):
            return gradients(model, objective, given, perturbation)

        shape = (2 * BATCH, LENGTH, 8)
        with_recomputation(model, recompute)
        return model, lambda: gradients_of_both(one_pass, shape, 0.5)[0]

    assert_same(model_and_gradients)


def test_xla_does_not_merge_both_computations():
    """It would keep the inside again. There are 6 products forward and 12 backward."""
    layer = TransformerLayer(NezhaConfig(**SIZES, position_encoding="absolute"))
    layer.build()
    states, mask = tf.ones((2, 8, 24)), tf.ones((1, 1, 1, 8), tf.bool)
    counts = []
    for layer.recompute in (False, True):

        @tf.function(jit_compile=True, autograph=False)
        def gradients_of_layer(states):
            with tf.GradientTape() as tape:
                tape.watch(states)
                output, _ = layer(states, mask, positions=AttentionPositions(), training=True)
                total = tf.reduce_sum(output * output)
            weights = [variable.value for variable in layer.trainable_variables]
            return tape.gradient(total, [states, *weights])

        text = gradients_of_layer.experimental_get_compiler_ir(states)(stage="optimized_hlo")
        counts.append(text.count(" dot("))
    assert counts == [18, 24]
