"""ALBERT's structure: narrow embeddings, and layers that share the weights of a group."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_encoders import batch_of

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForPreTraining
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.dropout import dropped
from nezha_tf.modeling.flops import training_flops
from nezha_tf.optimization.adamw import AdamWeightDecay
from nezha_tf.training import recipe
from nezha_tf.util.errors import UserError

SHARED = NezhaConfig(
    vocab_size=97,
    hidden_size=12,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
    type_vocab_size=4,
    max_position_embeddings=16,
    embedding_size=6,
    num_hidden_groups=2,
)
# Of the 3 layers: int(i / (3 / 2)) in transformers, int(i / 3 * 2) in TF1's program.
GROUPS = (0, 0, 1)
BATCH = {**batch_of(9), "masked_lm_positions": np.array([[1, 5, 0], [2, 3, 4]], "int32")}
OUTPUTS = ("sequence_output", "pooled_output", "masked_lm_logits", "next_sentence_logits")


def random_model(config, seed=0):
    """Returns a model whose weights are far from each other, also those that begin as 0 and 1."""
    model = NezhaForPreTraining(config)
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(variable.numpy() + 0.3 * rng.normal(size=variable.shape))
    return model


def part_of(variable):
    """Returns (a variable's path below the model, with {} for its layer or group; the number)."""
    parts = variable.path.split("/")[1:]
    names = [part for part in parts if part.startswith(("layer_", "group_"))]
    path = "/".join("{}" if part in names else part for part in parts)
    return path, int(names[0].split("_")[1]) if names else 0


def with_copies(model, groups):
    """Returns a model whose layers have weights of their own: copies of those of their groups."""
    copied = NezhaForPreTraining(dataclasses.replace(model.config, num_hidden_groups=None))
    values = {part_of(variable): variable.numpy() for variable in model.weights}
    for variable in copied.weights:
        path, layer = part_of(variable)
        variable.assign(values[path, groups[layer] if "{}" in path else 0])
    return copied


def gradients(model):
    """Returns {`part_of` each variable: the gradient of a sum of all outputs}."""
    with tf.GradientTape() as tape:
        outputs = model(BATCH, all_outputs=True)
        loss = sum(tf.reduce_mean(tf.sin(outputs[name])) for name in OUTPUTS)
    found = tape.gradient(loss, [variable.value for variable in model.weights])
    return {
        part_of(variable): tf.convert_to_tensor(gradient).numpy()
        for variable, gradient in zip(model.weights, found, strict=True)
    }


@pytest.mark.parametrize("encoding", ("absolute", "learned_relative"))
def test_shared_layers_are_layers_with_equal_weights(encoding):
    model = random_model(dataclasses.replace(SHARED, position_encoding=encoding))
    copied = with_copies(model, GROUPS)
    found, expected = model(BATCH, all_outputs=True), copied(BATCH, all_outputs=True)
    for name in OUTPUTS:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5, err_msg=name)
    assert found["embedding_output"].shape == (2, 9, 12)
    assert len(found["encoder_outputs"]) == len(found["keys_and_values"]) == 3


def test_a_gradient_of_shared_weights_is_the_sum_of_those_of_the_layers():
    model = random_model(SHARED)
    found, of_layers = gradients(model), gradients(with_copies(model, GROUPS))
    expected = {}
    for (path, layer), gradient in of_layers.items():
        key = (path, GROUPS[layer] if "{}" in path else 0)
        expected[key] = expected.get(key, 0) + gradient
    assert set(found) == set(expected)
    for key, gradient in found.items():
        np.testing.assert_allclose(gradient, expected[key], atol=1e-5, err_msg=str(key))


def test_as_many_groups_as_layers_are_the_ordinary_model():
    """With equal weights, and without an embedding_size: bit for bit."""
    sizes = {"embedding_size": None, "num_hidden_groups": SHARED.num_hidden_layers}
    model = random_model(dataclasses.replace(SHARED, **sizes))
    found, expected = (
        model(BATCH, all_outputs=True),
        with_copies(model, range(3))(BATCH, all_outputs=True),
    )
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[name], expected[name], name)
    assert "embedding_hidden_mapping_in" not in str([v.path for v in model.weights])


def test_each_use_of_a_layer_draws_its_own_dropout():
    encoder = NezhaEncoder(dataclasses.replace(SHARED, num_hidden_layers=2, num_hidden_groups=1))
    assert encoder.transformer_layers[1] is encoder.transformer_layers[0]
    dropout, found = encoder.transformer_layers[0].feed_forward_residual.dropout, []
    keys_of_call = dropout.keys_of_call
    dropout.keys_of_call = lambda *given: found.append(keys_of_call(*given)) or found[-1]
    encoder(batch_of(9), training=True, all_outputs=True)
    ones = keras.ops.ones((2, 9, 12))
    first, second = (np.array(dropped(ones, keys, dropout.rate)) for keys in found)
    assert (first != second).any() and 0 in first and 0 in second


def test_numbers_by_hand():
    """Weights and arithmetic of ALBERT: those of a group count once, those of a layer each time."""
    config = dataclasses.replace(SHARED, position_encoding="absolute")
    norm, dense = 2, lambda rows, columns: (rows + 1) * columns
    layer = 4 * dense(12, 12) + dense(12, 20) + dense(20, 12) + 2 * norm * 12
    embeddings = (97 + 4 + 16 + norm) * 6 + dense(6, 12)
    heads = dense(12, 12) + dense(12, 6) + norm * 6 + 97 + dense(12, 2)
    model = NezhaForPreTraining(config)
    assert model.count_params() == embeddings + 2 * layer + heads
    # T = 3, P = 2: the embeddings mapped; projections, feed-forward, scores and context.
    layer = 3 * (4 * 12 * 12 + 2 * 12 * 20) + 2 * (3 * 3 * 12)
    products = 3 * 6 * 12 + 3 * layer + 2 * (12 * 6 + 6 * 97) + 12 * 12
    assert training_flops(config, 3, 2) == 6 * products


def test_a_perturbation_is_as_wide_as_the_word_embeddings():
    """To add it to the embeddings of words is to add it to the rows of the table."""
    encoder = random_model(SHARED).encoder
    moved = np.random.default_rng(1).normal(size=(1, 1, 6)).astype("float32")
    found = encoder({**BATCH, "embedding_perturbation": moved})["sequence_output"]
    encoder.embeddings.word_embeddings.assign_add(moved[0])
    np.testing.assert_allclose(found, encoder(BATCH)["sequence_output"], atol=1e-5)


def test_a_group_is_frozen_as_a_whole():
    encoder = NezhaEncoder(SHARED)
    with pytest.raises(UserError, match="layers 1 and 2 share their weights"):
        recipe.freeze_layers(encoder, 1)
    recipe.freeze_layers(encoder, 2)
    trained = {tuple(v.path.split("/")[1:2]) for v in encoder.trainable_variables}
    assert trained == {("group_1",), ("pooler",)}


def test_layer_decay_counts_groups():
    optimizer = AdamWeightDecay(1e-2, layer_decay=0.5)
    variables = NezhaForPreTraining(SHARED).trainable_variables
    optimizer.build(variables)
    for variable in variables:
        factor, _ = optimizer.rate_and_decay(variable, 1.0)
        path, group = part_of(variable)
        depth = group + 1 if "{}" in path else 0 if "embeddings" in path else 4
        assert factor == 0.5 ** (4 - depth), path


def test_names_are_those_of_the_program_of_albert():
    """Of google-research/albert's modeling.py and run_pretraining.py, with their scopes."""
    config = dataclasses.replace(SHARED, position_encoding="absolute")
    dense, norm = ("kernel", "bias"), ("beta", "gamma")
    parts = {"embeddings/LayerNorm": norm, "encoder/embedding_hidden_mapping_in": dense}
    for group in range(2):
        inner = f"encoder/transformer/group_{group}/inner_group_0"
        parts |= {f"{inner}/attention_1/self/{n}": dense for n in ("query", "key", "value")}
        parts |= {f"{inner}/attention_1/output/dense": dense, f"{inner}/LayerNorm": norm}
        parts |= {f"{inner}/ffn_1/intermediate/dense": dense}
        parts |= {f"{inner}/ffn_1/intermediate/output/dense": dense, f"{inner}/LayerNorm_1": norm}
    parts["pooler/dense"] = dense
    names = [f"bert/{part}/{name}" for part, both in parts.items() for name in both]
    tables = ("word", "token_type", "position")
    names += [f"bert/embeddings/{name}_embeddings" for name in tables]
    names += [f"cls/predictions/transform/dense/{name}" for name in dense]
    names += [f"cls/predictions/transform/LayerNorm/{name}" for name in norm]
    names += ["cls/predictions/output_bias"]
    names += [f"cls/seq_relationship/output_{name}" for name in ("weights", "bias")]
    assert sorted(tf1_names(NezhaForPreTraining(config))) == sorted(names)
