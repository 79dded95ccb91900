"""Rotary positions against complex numbers: a pair of columns is one, and rotation is a product."""

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from small_encoders import SIZES

from nezha_tf import NezhaConfig, NezhaEncoder
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.positions.rotary import RotaryPositions
from nezha_tf.util.errors import UserError

CONFIG = NezhaConfig(**SIZES, position_encoding="rotary")


def rotary(size=24, heads=3):
    config = NezhaConfig(
        vocab_size=9, hidden_size=size, num_attention_heads=heads, position_encoding="rotary"
    )
    layer = RotaryPositions(config)
    layer.build()
    return layer


def as_complex(states):
    """Returns [..., H] as H/2 complex numbers, as in RoFormer §3.2.1."""
    states = np.asarray(states, "float64")
    return states[..., 0::2] + 1j * states[..., 1::2]


def unit(positions, size):
    """Returns e^(i p theta_k) with theta_k = 10000^(-2k/H)."""
    theta = 10000.0 ** (-2 * np.arange(size // 2) / size)
    return np.exp(1j * np.asarray(positions, "float64")[..., None] * theta)


@pytest.mark.parametrize("by_example", (False, True))
def test_attention_against_complex_numbers(by_example):
    """Output and probabilities of a layer, at positions up to 3,000."""
    rng = np.random.default_rng(0)
    attention, length = SelfAttention(CONFIG), 11
    attention.build()
    attention.set_weights([rng.normal(size=w.shape) / 2 for w in attention.get_weights()])
    weights = [w.astype("float64") for w in attention.get_weights()]
    states = rng.normal(size=(2, length, 24))
    mask = rng.random((2, 1, length, length)) < 0.7
    mask[..., 0] = True
    positions = rng.integers(0, 3000, (2, length) if by_example else length)

    q, k, v = (
        (states @ weights[2 * n] + weights[2 * n + 1]).reshape(2, length, 3, 8) for n in range(3)
    )
    turn = unit(np.broadcast_to(positions, (2, length)), 8)[:, :, None]
    q, k = as_complex(q) * turn, as_complex(k) * turn
    scores = np.einsum("bind,bjnd->bnij", q, k.conj()).real / np.sqrt(8)
    shares = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    probs = shares / shares.sum(-1, keepdims=True)
    context = np.einsum("bnij,bjnd->bind", probs, v).reshape(2, length, 24)
    output = context @ weights[6] + weights[7]

    positions = tf.constant(positions, tf.int32)
    given = rotary().between(positions, positions)
    inputs = tf.constant(states, tf.float32)
    found, _ = attention(inputs, mask, positions=given)
    np.testing.assert_allclose(found, output, atol=2e-5, rtol=0)
    found = attention.probabilities(inputs, mask, given)
    np.testing.assert_allclose(found, probs, atol=1e-5, rtol=0)


def test_gradients_are_turned_back():
    """If a value is rotated by an angle, its gradient is rotated by the opposite angle."""
    rng = np.random.default_rng(0)
    positions = tf.range(40, 47)
    states, directions = (
        [tf.constant(rng.normal(size=(2, 3, 7, 8)), tf.float32) for _ in range(2)] for _ in "ab"
    )
    with tf.GradientTape() as tape:
        tape.watch(states)
        turned = rotary().between(positions, positions).turned(*states)
        slope = sum(tf.reduce_sum(x * y) for x, y in zip(turned, directions, strict=True))
    for gradient, direction in zip(tape.gradient(slope, states), directions, strict=True):
        expected = as_complex(direction) * unit(positions, 8).conj()
        np.testing.assert_allclose(as_complex(gradient), expected, atol=1e-5)


POSITIONS = st.integers(0, 2**19 - 1)


@laws.examples(60)
@given(POSITIONS, POSITIONS, POSITIONS, st.sampled_from((2, 6, 64)), st.integers(0, 2**32 - 1))
def test_scores_depend_on_the_distance_alone(first, second, shift, size, seed):
    """At all positions, up to the rounding of float32, also far from 0."""
    query, key = np.random.default_rng(seed).normal(size=(2, 1, 1, 1, size)).astype("float32")
    found = []
    for moved in (0, shift):
        places = [tf.constant([place + moved]) for place in (first, second)]
        turned = rotary(size, 1).between(*places).turned(query, key)
        found.append(np.sum(turned[0] * turned[1], dtype="float64"))
    distance = unit(first - second, size)
    expected = np.sum(as_complex(query) * as_complex(key).conj() * distance).real
    tolerance = 1e-6 * np.linalg.norm(query) * np.linalg.norm(key)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_keys_from_a_cache_are_not_turned_again():
    """Of the positions of all keys, the last ones are those of the given keys."""
    rng = np.random.default_rng(0)
    states = [tf.constant(rng.normal(size=(2, 3, 4, 8)), tf.float32) for _ in "qk"]
    own = tf.range(5, 9)
    found = rotary().between(own, tf.range(9)).turned(*states)
    expected = rotary().between(own, own).turned(*states)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_heads_of_an_odd_size_are_refused():
    config = NezhaConfig(
        vocab_size=9, hidden_size=9, num_attention_heads=3, position_encoding="rotary"
    )
    with pytest.raises(UserError, match=r"a head has 3 .*even"):
        NezhaEncoder(config)
