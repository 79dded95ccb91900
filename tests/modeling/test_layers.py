"""Relative positions, masks and lengths, against brute force."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN, REPOSITORY
from helpers import load_golden_model
from waiting import TIME_LIMIT

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForPreTraining, attention_mask
from nezha_tf.errors import UserError
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.relative_position import (
    PairwisePositions,
    RelativePosition,
    SequencePositions,
)

SIZES = {
    "vocab_size": 97,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "type_vocab_size": 4,
}


def batch_of(length, batch_size=2, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length, (batch_size, 1))
    return {
        "input_ids": rng.integers(0, 97, (batch_size, length)).astype("int32"),
        "input_mask": (np.arange(length) < lengths).astype("int32"),
        "segment_ids": rng.integers(0, 4, (batch_size, length)).astype("int32"),
    }


@pytest.mark.parametrize(
    "name, length, depth, rows",
    (
        ("length5_depth8", 5, 8, slice(None)),
        ("length64_depth64", 64, 64, (0, 31, 63)),
        ("length160_depth64", 160, 64, (0, 79, 159)),
    ),
)
def test_functional_positions_of_the_original(golden, name, length, depth, rows):
    config = NezhaConfig(vocab_size=9, hidden_size=depth, num_attention_heads=1)
    layer = RelativePosition(config)
    layer.build()
    keys, values = layer(tf.range(length), tf.range(length))
    assert keys is values or np.array_equal(keys, values)
    expected = golden("relative_positions")[name]
    found = np.array(keys) if len(expected) == length else np.array(keys)[list(rows)]
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=0)
    assert not layer.trainable_variables


def pairwise_attention(states, mask, weights, tables):
    """Attention with relative positions clipped at 4, every pair of positions by itself.

    Float64; three heads of eight; as Shaw et al. (arXiv 1803.02155) write it in §3.2. Returns the
    output and the probabilities.
    """
    length = states.shape[1]
    index = [[min(max(j - i, -4), 4) + 4 for j in range(length)] for i in range(length)]
    key_table, value_table = (tf.gather(table, index) for table in tables)
    q, k, v = (
        tf.reshape(states @ weights[2 * n] + weights[2 * n + 1], (2, length, 3, 8))
        for n in range(3)
    )
    scores = tf.einsum("bind,bijnd->bnij", q, k[:, None] + key_table[None, :, :, None])
    probs = tf.nn.softmax(tf.where(mask, scores / np.sqrt(8), -np.inf))
    values = v[:, None] + value_table[None, :, :, None]
    context = tf.einsum("bnij,bijnd->bind", probs, values)
    output = tf.reshape(context, (2, length, 24)) @ weights[6] + weights[7] + states
    output -= tf.reduce_mean(output, -1, keepdims=True)
    output /= tf.sqrt(tf.reduce_mean(output**2, -1, keepdims=True) + 1e-12)
    return output * weights[8] + weights[9], probs


@pytest.mark.parametrize("of_sequence", (True, False))
@pytest.mark.parametrize("encoding", ("learned_relative", "functional_relative"))
def test_attention_and_its_gradients_against_every_pair(encoding, of_sequence):
    config = NezhaConfig(**SIZES, position_encoding=encoding, max_relative_position=4)
    rng = np.random.default_rng(1)
    positions, attention = RelativePosition(config), SelfAttention(config)
    for layer in (positions, attention):
        layer.build()
        layer.set_weights([rng.normal(size=w.shape) / 2 for w in layer.get_weights()])
    states, direction = rng.normal(size=(2, 2, 11, 24))
    mask = rng.random((2, 1, 11, 11)) < 0.7
    mask[..., 0] = True
    weights = [tf.constant(w, tf.float64) for w in attention.get_weights()]
    if encoding == "learned_relative":
        tables = [tf.constant(table, tf.float64) for table in positions.get_weights()]
    else:
        angle = np.arange(9)[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
        table = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(9, 8)
        tables = [tf.constant(table)] * 2
    inputs = tf.constant(states)
    with tf.GradientTape() as tape:
        tape.watch([inputs, *weights, *tables])
        expected, expected_probs = pairwise_attention(inputs, mask, weights, tables)
        slope = tf.reduce_sum(expected * direction)
    trained = tables if encoding == "learned_relative" else []
    expected_gradients = tape.gradient(slope, [inputs, *weights, *trained])

    inputs = tf.constant(states, tf.float32)
    sources = [*attention.trainable_variables, *positions.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        pieces = tf.range(11)
        given = positions.of_sequence(11) if of_sequence else positions(pieces, pieces)
        assert isinstance(given, SequencePositions if of_sequence else PairwisePositions)
        found, _ = attention(inputs, mask, given)
        slope = tf.reduce_sum(found * direction.astype("float32"))
    gradients = tape.gradient(slope, [inputs, *(variable.value for variable in sources)])
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=0)
    probs = attention.probabilities(inputs, mask, given)
    np.testing.assert_allclose(probs, expected_probs, atol=1e-5, rtol=0)
    expected_gradients = [tf.convert_to_tensor(gradient) for gradient in expected_gradients]
    largest = max(tf.reduce_max(tf.abs(gradient)) for gradient in expected_gradients)
    for gradient, right in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient), right, atol=1e-5 * largest, rtol=0
        )


@pytest.mark.parametrize("pooled_only", (False, True))
def test_attention_probabilities_of_each_layer(pooled_only):
    """Against a softmax in NumPy of each layer's input, also where the model reads [CLS] alone."""
    config = NezhaConfig(**SIZES, position_encoding="absolute", initializer_range=0.5)
    encoder = NezhaEncoder(config, pooled_only=pooled_only)
    batch = batch_of(9)
    batch["attention_mask"] = attention_mask.seq2seq(batch["input_mask"], batch["segment_ids"])
    outputs = encoder(batch)
    states = [outputs["embedding_output"], *outputs["encoder_outputs"][:-1]]
    found = encoder.attention_probabilities(batch)
    assert len(found) == 3
    for layer, its_states, probs in zip(encoder.transformer_layers, states, found, strict=True):
        weights = layer.attention.get_weights()
        q, k = (
            (np.array(its_states) @ weights[2 * n] + weights[2 * n + 1]).reshape(2, 9, 3, 8)
            for n in range(2)
        )
        scores = np.einsum("bind,bjnd->bnij", q, k) / np.sqrt(8)
        shares = np.where(batch["attention_mask"], np.exp(scores - scores.max()), 0.0)
        assert probs.dtype == "float32"
        np.testing.assert_allclose(probs, shares / shares.sum(-1, keepdims=True), atol=1e-5)


def test_how_positions_of_a_sequence_are_held():
    """A table of pairs up to as many pieces as there are distances (9); else by distance."""
    positions = RelativePosition(NezhaConfig(**SIZES, max_relative_position=4))
    positions.build()
    for length, kind in ((9, PairwisePositions), (10, SequencePositions)):
        assert isinstance(positions.of_sequence(length), kind)
    assert isinstance(positions.of_sequence(tf.constant(9)), SequencePositions)


def terms_of_every_pair(query, probs, keys, values):
    """Scores and context of relative positions, from a table entry for each pair."""
    length, bound = query.shape[2], len(keys) // 2
    index = [[min(max(j - i, -bound), bound) + bound for j in range(length)] for i in range(length)]
    scores = tf.einsum("bnth,tsh->bnts", query, tf.gather(keys, index))
    return scores, tf.einsum("bnts,tsh->bnth", probs, tf.gather(values, index))


@pytest.mark.parametrize("jit_compile", (False, True))
@pytest.mark.parametrize(
    "length, bound, size, dtype, tolerance",
    (
        (200, 64, 5, "float32", 1e-6),
        (65, 64, 8, "float32", 1e-6),
        (64, 64, 8, "float32", 1e-6),
        (7, 64, 3, "float32", 1e-6),
        (1, 64, 8, "float32", 1e-6),
        (30, 1, 7, "float32", 1e-6),
        (70, 8, 5, "float16", 5e-3),
    ),
)
def test_positions_of_a_sequence_against_every_pair(
    length, bound, size, dtype, tolerance, jit_compile
):
    """Values and gradients, in a graph that does not know the length."""
    rng = np.random.default_rng(0)
    shapes = [(2, 3, length, size), (2, 3, length, length), *[(2 * bound + 1, size)] * 2]
    given = [rng.normal(size=shape) for shape in shapes]
    directions = [rng.normal(size=shape) for shape in (shapes[1], shapes[0])]

    def with_gradients(terms, given, directions):
        with tf.GradientTape() as tape:
            tape.watch(given)
            found = terms(*given)
            slope = sum(tf.reduce_sum(x * y) for x, y in zip(found, directions, strict=True))
        return [*found, *map(tf.convert_to_tensor, tape.gradient(slope, given))]

    def terms_of_sequence(query, probs, keys, values):
        positions = SequencePositions(keys, values)
        return positions.scores(query), positions.context(probs)

    free = [
        tf.TensorSpec((None, 3, None, size), dtype),
        tf.TensorSpec((None, 3, None, None), dtype),
    ]
    signature = [[*free, *(tf.TensorSpec(shape, dtype) for shape in shapes[2:])], free[::-1]]

    @tf.function(input_signature=signature, jit_compile=jit_compile)
    def of_sequence(given, directions):
        return with_gradients(terms_of_sequence, given, directions)

    cast = [[tf.constant(value, dtype) for value in values] for values in (given, directions)]
    exact = [[tf.constant(value, tf.float64) for value in values] for values in (given, directions)]
    expected = with_gradients(terms_of_every_pair, *exact)
    for found, right in zip(of_sequence(*cast), expected, strict=True):
        assert found.dtype == dtype
        largest = tf.reduce_max(tf.abs(right)).numpy()
        np.testing.assert_allclose(found, right, atol=tolerance * largest, rtol=0)


def test_learned_positions_train_and_functional_ones_do_not():
    trained = {
        encoding: sum(
            "relative_position" in v.path
            for v in NezhaEncoder(
                NezhaConfig(**SIZES, position_encoding=encoding)
            ).trainable_variables
        )
        for encoding in ("functional_relative", "learned_relative", "absolute")
    }
    assert trained == {"functional_relative": 0, "learned_relative": 2, "absolute": 0}


@pytest.mark.parametrize("encoding", ("functional_relative", "learned_relative"))
def test_any_length(encoding):
    """Padding adds nothing: a sequence has the same outputs alone and in a longer batch."""
    encoder = NezhaEncoder(NezhaConfig(**SIZES, position_encoding=encoding))
    long = batch_of(600)
    long["input_mask"][:] = np.arange(600) < 300
    short = {name: values[:, :300] for name, values in long.items()}
    outputs = [encoder(batch)["sequence_output"][:, :300] for batch in (long, short)]
    np.testing.assert_allclose(*outputs, atol=2e-5)


def test_absolute_positions_end_with_their_table():
    config = NezhaConfig(**SIZES, position_encoding="absolute", max_position_embeddings=20)
    encoder = NezhaEncoder(config)
    encoder(batch_of(20))
    with pytest.raises(UserError, match=r"21 pieces is longer than the table.*20"):
        encoder(batch_of(21))


@pytest.mark.parametrize("encoding", ("functional_relative", "learned_relative", "absolute"))
def test_parts_of_the_public_surface(encoding):
    model = NezhaForPreTraining(NezhaConfig(**SIZES, position_encoding=encoding))
    inputs = {**batch_of(30), "masked_lm_positions": np.array([[1, 5, 0], [2, 3, 4]], "int32")}
    outputs = model(inputs)
    assert outputs["sequence_output"].shape == (2, 30, 24)
    assert outputs["pooled_output"].shape == (2, 24)
    assert [o.shape for o in outputs["encoder_outputs"]] == [(2, 30, 24)] * 3
    assert outputs["embedding_output"].shape == (2, 30, 24)
    assert outputs["masked_lm_logits"].shape == (2, 3, 97)
    assert outputs["next_sentence_logits"].shape == (2, 2)
    # Dropout draws anew at each call in training, and is off otherwise.
    pooled = [np.array(model(inputs, training=True)["pooled_output"]) for _ in range(2)]
    assert np.abs(pooled[0] - pooled[1]).max() > 1e-3
    np.testing.assert_array_equal(model(inputs)["pooled_output"], outputs["pooled_output"])


@pytest.mark.parametrize("precision", ("mixed_float16", "mixed_bfloat16"))
def test_mixed_precision_stays_near_float32(precision):
    config = NezhaConfig(**SIZES)
    models = [NezhaForPreTraining(config, dtype=dtype) for dtype in ("float32", precision)]
    models[1].set_weights(models[0].get_weights())
    assert {v.dtype for v in models[1].trainable_variables} == {"float32"}
    inputs = {**batch_of(30), "masked_lm_positions": np.array([[1, 5, 0], [2, 3, 4]], "int32")}
    outputs = [model(inputs) for model in models]
    for name in ("masked_lm_logits", "next_sentence_logits"):
        assert outputs[1][name].dtype == tf.float32
        np.testing.assert_allclose(outputs[0][name], outputs[1][name], atol=0.05)
    assert outputs[1]["sequence_output"].dtype == precision.removeprefix("mixed_")


def test_attention_masks_by_hand():
    """Four pieces and one of padding; pieces 2 and 3 are the target."""
    input_mask = np.array([[1, 1, 1, 1, 0]])
    segment_ids = np.array([[4, 4, 5, 5, 0]])
    padding_query = [1, 1, 1, 1, 0]
    expected = {
        "bidirectional": [[1, 1, 1, 1, 0]] * 4,
        "left_to_right": [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]],
        "right_to_left": [[1, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0]],
        "seq2seq": [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]],
    }
    for name, rows in expected.items():
        arguments = (input_mask, segment_ids) if name == "seq2seq" else (input_mask,)
        found = getattr(attention_mask, name)(*arguments)
        assert found.dtype == tf.bool and found.shape == (1, 1, 5, 5)
        np.testing.assert_array_equal(found[0, 0], np.array([*rows, padding_query], bool), name)


WITHOUT_TENSORFLOW = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ImportError(name + " is hidden")
sys.meta_path.insert(0, Hide())
import importlib
import pkgutil
import numpy as np
import jax
import nezha_tf
for stage in ("modeling", "objectives", "optimization"):
    package = importlib.import_module("nezha_tf." + stage)
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
from nezha_tf.objectives import classification
from nezha_tf.objectives.pretraining import MaskedLMLoss
from nezha_tf.optimization.clipping import clip_by_global_norm, global_norm
model_folder, weights = sys.argv[1:]
config = nezha_tf.NezhaConfig.from_json_file(model_folder + "/bert_config.json")
model = nezha_tf.NezhaForPreTraining(config)
model.set_weights([array for _, array in sorted(np.load(weights).items())])
figures = np.load(model_folder + "/forward.npz")
batch = {key[3:]: figures[key] for key in figures if key.startswith("in.")}
objective = MaskedLMLoss()
def loss_of(trainable):
    outputs, _ = model.stateless_call(trainable, others, objective.inputs(batch))
    losses = objective.losses(outputs, batch).values()
    return sum(loss.over(loss.weight) for loss in losses)
others = [variable.value for variable in model.non_trainable_variables]
trainable = [variable.value for variable in model.trainable_variables]
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
zeros = np.zeros((2, 3), "float32")
labels = {"input_mask": np.ones((2, 4), int), "label_ids": np.zeros((2, 3), int)}
[loss] = classification.MultiLabelLoss().losses({"logits": zeros}, labels).values()
assert abs(loss.over(loss.weight) - np.log(2)) < 1e-6, loss
"""


def test_model_loss_and_optimizer_run_where_there_is_no_tensorflow(tmp_path):
    """In a process that cannot import tensorflow, on JAX: the original's loss and norm."""
    weights = str(tmp_path / "weights.npz")
    values = load_golden_model("nezha_tiny").get_weights()
    np.savez(weights, **{f"{index:03}": value for index, value in enumerate(values)})
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, str(GOLDEN / "nezha_tiny"), weights],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        cwd=REPOSITORY,
        check=True,
        timeout=TIME_LIMIT,
    )
