"""Relative positions by tables against a brute-force computation for every pair."""

import numpy as np
import pytest
import tensorflow as tf
from small_encoders import SIZES

from nezha_tf import NezhaConfig, NezhaEncoder
from nezha_tf.modeling import positions
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.positions.base import Positions
from nezha_tf.modeling.positions.distances import SequencePositions
from nezha_tf.modeling.positions.relative import BeamPositions, PairwisePositions

ENCODINGS = ("functional_relative", "learned_relative")


def layer_of(config):
    layer = positions.of(config)(config)
    layer.build()
    return layer


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
    layer = layer_of(config)
    found = layer.between(tf.range(length), tf.range(length))
    keys = found.keys
    np.testing.assert_array_equal(keys, found.values)
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
    return tf.reshape(context, (2, length, 24)) @ weights[6] + weights[7], probs


@pytest.mark.parametrize(
    "encoding, of_sequence",
    (("learned_relative", True), ("learned_relative", False), ("functional_relative", True)),
)
def test_attention_and_its_gradients_against_every_pair(encoding, of_sequence):
    config = NezhaConfig(**SIZES, position_encoding=encoding, max_relative_position=4)
    rng = np.random.default_rng(1)
    layer_of_positions, attention = layer_of(config), SelfAttention(config)
    attention.build()
    for layer in (layer_of_positions, attention):
        layer.set_weights([rng.normal(size=w.shape) / 2 for w in layer.get_weights()])
    states, direction = rng.normal(size=(2, 2, 11, 24))
    mask = rng.random((2, 1, 11, 11)) < 0.7
    mask[..., 0] = True
    weights = [tf.constant(w, tf.float64) for w in attention.get_weights()]
    if encoding == "learned_relative":
        tables = [tf.constant(table, tf.float64) for table in layer_of_positions.get_weights()]
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
    sources = [*attention.trainable_variables, *layer_of_positions.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        tokens = tf.range(11)
        given = layer_of_positions.of_sequence(11)
        if not of_sequence:
            given = layer_of_positions.between(tokens, tokens)
        assert isinstance(given, SequencePositions if of_sequence else PairwisePositions)
        found, _ = attention(inputs, mask, positions=given)
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


def test_how_positions_of_a_sequence_are_held():
    """A table of pairs for up to as many tokens as distances (9), otherwise one of distances."""
    layer = layer_of(NezhaConfig(**SIZES, max_relative_position=4))
    for length, kind in ((9, PairwisePositions), (10, SequencePositions)):
        assert isinstance(layer.of_sequence(length), kind)
    assert isinstance(layer.of_sequence(tf.constant(9)), SequencePositions)


# Half the distance of 1 to the next number.
UNITS = {"float32": 2.0**-24, "float16": 2.0**-11}


def terms_of_every_pair(query, probs, keys, values):
    """Returns scores and context of relative positions, with a table entry for each pair."""
    length, bound = query.shape[2], len(keys) // 2
    index = [[min(max(j - i, -bound), bound) + bound for j in range(length)] for i in range(length)]
    scores = tf.einsum("bnth,tsh->bnts", query, tf.gather(keys, index))
    return scores, tf.einsum("bnts,tsh->bnth", probs, tf.gather(values, index))


@pytest.mark.parametrize(
    "length, bound, size, dtype, jit_compile",
    (
        (200, 64, 5, "float32", False),
        (65, 64, 8, "float32", True),
        (64, 64, 8, "float32", False),
        (7, 64, 3, "float32", True),
        (1, 64, 8, "float32", False),
        (30, 1, 7, "float32", True),
        (70, 8, 5, "float16", True),
    ),
)
def test_positions_of_a_sequence_against_every_pair(length, bound, size, dtype, jit_compile):
    """Values and gradients, in a graph with dynamic length.

    All are sums of products. The dtype rounds both factors and their product; and the roundings of
    a sum, as often up as down, come to about one more of the sum of the absolute products, in any
    order. These are four units, and 16 are allowed.
    """
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
        given = SequencePositions(keys, values)
        return given.scores(query), given.context(probs)

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
    positive = [[tf.abs(value) for value in values] for values in exact]
    sums = with_gradients(terms_of_every_pair, *positive)
    for found, right, most in zip(of_sequence(*cast), expected, sums, strict=True):
        assert found.dtype == dtype
        wide = tf.cast(found, tf.float64)
        np.testing.assert_array_less(tf.abs(wide - right), 16 * UNITS[dtype] * most + 1e-300)


@pytest.mark.parametrize("encoding, trained", (("functional_relative", 0), ("learned_relative", 2)))
def test_learned_positions_train_and_functional_ones_do_not(encoding, trained):
    encoder = NezhaEncoder(NezhaConfig(**SIZES, position_encoding=encoding))
    assert sum("positions" in v.path for v in encoder.trainable_variables) == trained


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_of_each_example_by_itself(encoding):
    """Positions [B, T] give each example the same as its own [T], also if targets have beams."""
    layer = layer_of(NezhaConfig(**SIZES, position_encoding=encoding, max_relative_position=4))
    rng = np.random.default_rng(0)
    queries, source, target = (
        tf.constant(rng.integers(0, 12, (2, n)), tf.int32) for n in (2, 5, 3)
    )
    states = tf.constant(rng.normal(size=(2, 3, 2 * 4, 8)), tf.float32)
    probs = tf.constant(rng.random(size=(2, 3, 2 * 4, 5 + 3 * 4)), tf.float32)
    for name, given in (("scores", states), ("context", probs)):
        whole = layer.of_beams(queries, source, target, 4)
        pairs = Positions.of_beams(layer, queries, source, target, 4)
        assert isinstance(whole, BeamPositions) and isinstance(pairs, PairwisePositions)
        for found in (whole, pairs):
            for row in range(2):
                alone = layer.of_beams(queries[row], source[row], target[row], 4)
                np.testing.assert_allclose(
                    getattr(found, name)(given)[row],
                    getattr(alone, name)(given[row : row + 1])[0],
                    atol=1e-5,
                )
