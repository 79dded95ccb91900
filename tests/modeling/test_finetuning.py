"""The models of the understanding tasks: layer decay, freezing, lengths, the head's precision."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_task import CONFIG

from nezha_tf import AdamWeightDecay, NezhaConfig
from nezha_tf.checkpoints.name_table import tf1_name
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling.finetuning import (
    NezhaForQuestionAnswering,
    NezhaForSequenceClassification,
    NezhaForTokenClassification,
)
from nezha_tf.modeling.heads import LinearHead
from nezha_tf.training import recipe

TWO_LAYERS = dataclasses.replace(NezhaConfig.from_dict(CONFIG), num_hidden_layers=2)


def new_model(model_class):
    keras.utils.set_random_seed(3)
    arguments = () if model_class is NezhaForQuestionAnswering else (3,)
    return model_class(TWO_LAYERS, *arguments)


def changes(model_class, freeze=0, **settings):
    """Returns {TF1 name: change by one step} of the trainable variables."""
    model = new_model(model_class)
    recipe.freeze_layers(model.encoder, freeze)
    ids = np.arange(12).reshape(2, 6)
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": 0 * ids}
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        outputs = model(inputs, all_outputs=True)
        loss = sum(tf.reduce_sum(outputs[n] ** 2) for n in outputs if n.endswith("logits"))
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    assert all(gradient is not None for gradient in gradients)
    optimizer = AdamWeightDecay(1e-2, **settings)
    optimizer.build(variables)
    before = [variable.numpy() for variable in variables]
    for variable, gradient in zip(variables, gradients, strict=True):
        optimizer.update_step(tf.convert_to_tensor(gradient), variable, 1e-2)
    names = [tf1_name(variable.path) for variable in variables]
    return {n: v.numpy() - old for n, v, old in zip(names, variables, before, strict=True)}


def depth(name):
    """0 for the embeddings, 1 and 2 for the layers, 4 for pooler and head, as in ELECTRA."""
    if "/layer_" in name:
        return int(name.split("/layer_")[1].split("/")[0]) + 1
    return 0 if "embeddings" in name else 4


@pytest.mark.parametrize("model_class", (NezhaForSequenceClassification, NezhaForQuestionAnswering))
def test_heads_move_at_the_full_rate_and_frozen_layers_not_at_all(model_class):
    plain = changes(model_class)
    decayed = changes(model_class, layer_decay=0.5)
    assert {depth(name) for name in plain} == {0, 1, 2, 4}
    for name, change in plain.items():
        expected = change * 0.5 ** (4 - depth(name))
        np.testing.assert_allclose(decayed[name], expected, atol=2e-7, err_msg=name)
    frozen = changes(model_class, freeze=1)
    assert set(frozen) == {name for name in plain if depth(name) > 1}


@pytest.mark.parametrize(
    "encoding, max_seq_length",
    [("functional_relative", 40), *((encoding, None) for encoding in POSITION_ENCODINGS)],
)
def test_lengths_that_only_the_graph_knows_change_nothing(max_seq_length, encoding):
    keras.utils.set_random_seed(3)
    settings = {"position_encoding": encoding, "max_relative_position": 20}
    config = dataclasses.replace(TWO_LAYERS, num_hidden_layers=1, **settings)
    model = NezhaForTokenClassification(config, 3, max_seq_length)
    spec = {
        name: tf.TensorSpec((2, None), tf.int32)
        for name in ("input_ids", "input_mask", "segment_ids")
    }

    @tf.function(input_signature=[spec], jit_compile=True)
    def in_graph(inputs):
        return model(inputs)

    for length in (3, 40):
        ids = np.arange(2 * length, dtype=np.int32).reshape(2, length) % 30
        mask = (np.arange(length) < np.array([[length], [3]])).astype(np.int32)
        inputs = {"input_ids": ids, "input_mask": mask, "segment_ids": 0 * ids}
        inputs = {name: tf.constant(values) for name, values in inputs.items()}
        expected = model(inputs).numpy()
        np.testing.assert_allclose(in_graph(inputs).numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("precision", ("float32", "mixed_bfloat16", "mixed_float16"))
def test_the_head_scores_in_float32(precision):
    """In half precision, hundreds of positions would have the same logit as the best one."""
    rng = np.random.default_rng(1)
    head = LinearHead(NezhaConfig.from_dict(CONFIG), 2, dtype=precision)
    states = tf.cast(rng.normal(size=(4, 512, CONFIG["hidden_size"])), head.compute_dtype)
    head.build()
    for variable in head.weights:
        variable.assign(rng.normal(size=variable.shape))
    weights, bias = (variable.numpy().astype("float64") for variable in head.weights)
    logits = head(states)
    expected = tf.cast(states, "float64").numpy() @ weights.T + bias
    assert logits.dtype == tf.float32
    np.testing.assert_allclose(logits, expected, atol=1e-5, rtol=1e-5)
