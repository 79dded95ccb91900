"""Dropout from hashed indices."""

import math

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from nezha_tf.modeling.dropout import Dropout, hashed_bits, indices, mix


@pytest.mark.parametrize("jit_compile", (False, True))
def test_share_and_independence(jit_compile):
    """A million draws with rate 0.1: the share's standard deviation is 0.0003."""
    dropout = Dropout(0.1, seed=3)
    call = tf.function(lambda x: dropout(x, training=True), jit_compile=jit_compile)
    masks = [call(np.ones((50, 100, 200), "float32")).numpy() == 0 for _ in range(2)]
    assert abs(masks[0].mean() - 0.1) < 0.0015
    others = [masks[1], *(np.roll(masks[0], shift, axis) for axis in range(3) for shift in (1, 2))]
    for other in others:
        assert abs((masks[0] & other).mean() - 0.01) < 0.0005


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16"))
def test_what_is_kept_is_scaled_and_so_is_its_gradient(dtype):
    dropout = Dropout(0.5, dtype=dtype)
    inputs = tf.constant(np.arange(1, 41).reshape(4, 10), dtype)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = dropout(inputs, training=True)
    gradient = tape.gradient(output, inputs)
    assert output.dtype == gradient.dtype == dtype
    kept = output.numpy() != 0
    assert 0 < kept.mean() < 1
    np.testing.assert_array_equal(output.numpy(), np.where(kept, 2 * inputs.numpy(), 0))
    np.testing.assert_array_equal(gradient.numpy(), np.where(kept, 2, 0))


def test_masks_follow_the_seeds_state():
    dropout = Dropout(0.3, seed=5)
    inputs = tf.ones((8, 50))
    state = dropout.seed_generator.state.numpy()
    first, second = (dropout(inputs, training=True).numpy() for _ in range(2))
    assert (first != second).any()
    dropout.seed_generator.state.assign(state)
    np.testing.assert_array_equal(dropout(inputs, training=True), first)


def test_off_outside_training_and_at_rate_zero():
    inputs = tf.ones((3, 4))
    np.testing.assert_array_equal(Dropout(0.5)(inputs, training=False), inputs)
    np.testing.assert_array_equal(Dropout(0.0)(inputs, training=True), inputs)


def mixed_by_hand(x):
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    return x ^ x >> 16


def test_mix_in_plain_integers():
    given = [0, 1, 2, 0x80000000, 0xFFFFFFFF]
    expected = [mixed_by_hand(x) for x in given]
    np.testing.assert_array_equal(mix(tf.constant(given, tf.uint32)), expected)


@laws.examples(40)
@given(st.lists(st.integers(0, 5), max_size=4), st.integers(0, 2**32 - 1), st.booleans())
def test_bits_are_hashes_of_the_index_in_plain_integers(shape, key, is_static):
    other = key ^ 0x55555555
    keys = tf.constant([key, other], tf.uint32)
    spec = tf.TensorSpec(shape if is_static else [None] * len(shape))
    bits = tf.function(lambda x: hashed_bits(*tf.unstack(keys), ops.shape(x)), [spec])
    expected = [
        mixed_by_hand((mixed_by_hand(index ^ key) + other) % 2**32)
        for index in range(math.prod(shape))
    ]
    np.testing.assert_array_equal(bits(tf.zeros(shape)), np.reshape(expected, shape))


@laws.examples(60)
@given(st.lists(st.integers(0, 2**31 - 1), max_size=3), st.integers(1, 3000))
def test_indices_of_large_matrices_in_plain_integers(rows, columns):
    expected = [[(row * columns + column) % 2**32 for column in range(columns)] for row in rows]
    found = indices(tf.constant(rows, tf.int32), columns)
    np.testing.assert_array_equal(found, np.reshape(expected, (len(rows), columns)))


def test_more_entries_than_int32_counts():
    """The graph of 2^31 is made, but not run: that would take 8 GB."""
    keys = tf.constant([1, 2], tf.uint32)
    shape = (32, 16, 2048, 2048)
    graph = tf.function(lambda keys: hashed_bits(*tf.unstack(keys), shape))
    assert graph.get_concrete_function(keys).structured_outputs.shape == shape
