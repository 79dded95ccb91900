"""Parts that XLA compiles by themselves: the numbers of the same operations without it."""

import keras
import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from keras import ops
from objective_gradients import LENGTH, batch, gradients
from small_encoders import narrow_config

from nezha_tf.modeling.compiled_parts import compiled_parts, fused
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.training.devices import compiled

# What is a pass over memory in graph mode, and no product.
BETWEEN = {"Softmax", "Rsqrt", "Exp", "Erf", "SparseSoftmaxCrossEntropyWithLogits"}
PRODUCTS = {"MatMul", "BatchMatMulV2", "Einsum"}
# Of narrow_config's dimensions, the vocabulary has the most terms to a sum.
LONGEST_SUM = 40
PRE = {"norm_position": "pre", "norm": "rms_norm", "feed_forward": "swiglu", "use_bias": False}
# Each encoding, each kind of loss, and each block once.
ALTOGETHER = [
    ("bidirectional", "functional_relative", {}),
    ("causal", "learned_relative", PRE),
    ("permutation", "functional_relative", {}),
    ("replaced_tokens", "absolute", {"hidden_size": 16, "num_attention_heads": 4}),
    (
        "left_to_right",
        "rotary",
        {"hidden_act": "relu", "num_hidden_groups": 1, "embedding_size": 6},
    ),
]


def gradients_of(objectives, config, dtype, is_on, are_moved=False):
    """Returns gradients of two passes with dropout, float32 arrays, always of the same draws.

    Args:
      are_moved: whether each weight is first replaced by a neighbour, the next number that its
        dtype has above it or below.
    """
    keras.utils.set_random_seed(3)
    mixture = ObjectiveMixture.from_text(objectives)
    model, loss = mixture.model(config, dtype=dtype), mixture.loss(False)
    for weight in model.trainable_variables if are_moved else ():
        sides = np.random.default_rng(weight.shape[0]).choice([-1e9, 1e9], weight.shape)
        weight.assign(np.nextafter(weight.numpy(), sides.astype(weight.dtype)))
    with compiled_parts(is_on):
        found = [*gradients(model, loss, batch())[0], *gradients(model, loss, batch())[0]]
    return [tf.cast(gradient, "float32").numpy() for gradient in found]


def rounding_of(expected, moved):
    """Returns bounds of what other orders of summation change of gradients, one for each array.

    The gradients of moved weights tell what it changes if one factor of each product is rounded
    otherwise: what has an effect on a gradient, and how much is lost where its terms cancel. A sum
    of n terms is rounded up to n times as often, on any processor; and at the end each gradient is
    rounded itself.

    Args:
      expected, moved: results of `gradients_of`.
    """
    changes = [np.abs(one - other).max() for one, other in zip(expected, moved, strict=True)]
    half = len(changes) // 2  # both passes have the same weights, and other dropout
    changes = np.maximum(changes[:half], changes[half:]).tolist() * 2
    sizes = [np.abs(gradient).max() for gradient in expected]
    return [
        LONGEST_SUM * (change + 2.0**-24 * size)
        for change, size in zip(changes, sizes, strict=True)
    ]


@pytest.mark.parametrize("objectives, encoding, changes", ALTOGETHER)
def test_gradients_are_those_of_the_same_model_without_xla(objectives, encoding, changes):
    config = narrow_config(encoding, num_hidden_layers=2, max_position_embeddings=LENGTH, **changes)
    expected = gradients_of(objectives, config, "float32", is_on=False)
    found = gradients_of(objectives, config, "float32", is_on=True)
    assert len(found) > 40
    moved = gradients_of(objectives, config, "float32", is_on=False, are_moved=True)
    bounds = rounding_of(expected, moved)
    sizes = [np.abs(gradient).max() for gradient in expected]
    shares = [bound / size for bound, size in zip(bounds, sizes, strict=True) if size]
    assert np.median(shares) < 1e-3  # what is forgotten, or rounded to bfloat16, is more
    for one, other, bound in zip(found, expected, bounds, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=bound)


def test_bfloat16_is_nearer_to_float32_than_where_each_operation_rounds():
    config = narrow_config("functional_relative", max_position_embeddings=LENGTH)
    expected = np.concatenate(
        [g.ravel() for g in gradients_of("bidirectional", config, "float32", False)]
    )
    apart = {}
    for is_on in (False, True):
        found = gradients_of("bidirectional", config, "mixed_bfloat16", is_on)
        difference = np.concatenate([g.ravel() for g in found]) - expected
        apart[is_on] = np.linalg.norm(difference) / np.linalg.norm(expected)
    assert apart[True] < apart[False] < 0.2


FLOATS = arrays.arrays(
    np.float32, arrays.array_shapes(min_dims=1, max_dims=3), elements=st.floats(-100, 100, width=16)
)


@fused
def cube_and_sum(x, absent, whole, *, power):
    assert absent is None
    return x**power + ops.cast(whole, x.dtype), ops.sum(ops.cast(x, "float32"))


@laws.examples(60)
@given(FLOATS, st.sampled_from([2, 3]))
def test_it_computes_in_float32_and_rounds_results_once(values, power):
    """Also the gradient, x^power's and the sum's; integers have none, and None stays None."""
    x = tf.cast(values, "bfloat16")
    whole = tf.ones(values.shape, tf.int32)
    with compiled_parts(), tf.GradientTape() as tape:
        tape.watch(x)
        powers, total = cube_and_sum(x, None, whole, power=power)
        loss = tf.reduce_sum(tf.cast(powers, tf.float32)) + total
    wide = tf.cast(x, tf.float32).numpy().astype("float64")
    assert (powers.dtype, total.dtype) == (tf.bfloat16, tf.float32)
    one = 2.0**-8  # half the distance of two bfloat16, relative
    np.testing.assert_allclose(tf.cast(powers, tf.float64), wide**power + 1, rtol=1.01 * one)
    np.testing.assert_allclose(total, wide.sum(), rtol=1e-5, atol=1e-3)
    expected = power * wide ** (power - 1) + 1
    gradient = tf.cast(tape.gradient(loss, x), tf.float64)
    np.testing.assert_allclose(gradient, expected, rtol=1.01 * one, atol=1e-30)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float32"])
def test_only_bfloat16_leaves_its_products_to_tensorflow(dtype):
    """The products of a whole backward pass are outside of XLA, and all that is costly inside."""
    mixture = ObjectiveMixture.from_text("bidirectional")
    config = narrow_config("functional_relative", max_position_embeddings=LENGTH)
    model, loss = mixture.model(config, dtype=dtype), mixture.loss(False)
    function = compiled(
        lambda given: gradients(model, loss, given)[0], True, model, tf.distribute.get_strategy()
    )
    traced = function.get_concrete_function(batch())
    graph = traced.graph.as_graph_def(add_shapes=False)
    at_top = {node.op for node in graph.node}
    if dtype == "float32":
        assert traced.function_def.attr["_XlaMustCompile"].b
        return
    assert not traced.function_def.attr["_XlaMustCompile"].b
    assert at_top & PRODUCTS and not at_top & BETWEEN, at_top
    inside = [f for f in graph.library.function if f.attr["_XlaMustCompile"].b]
    found = {node.op for function in inside for node in function.node_def}
    assert found & BETWEEN and not found & PRODUCTS, found
