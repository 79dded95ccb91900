"""Losses of the vocabulary in chunks: against all scores at once, and what exists in between."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from objective_gradients import batch, gradients
from small_encoders import narrow_config

from nezha_tf.modeling import label_scores as module
from nezha_tf.objectives.mixture import ObjectiveMixture

COUNT, WIDTH, TOKENS = 150, 12, 41


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 32)


def inputs(share, dtype="float32"):
    rng = np.random.default_rng(0)
    states, table = (
        tf.constant(rng.normal(size=shape), dtype) for shape in ((COUNT, WIDTH), (TOKENS, WIDTH))
    )
    bias = tf.constant(rng.normal(size=TOKENS), tf.float32)
    labels = tf.constant(rng.integers(0, TOKENS, COUNT), tf.int32)
    return (states, table, bias), labels, tf.constant(rng.random(COUNT) < share)


def all_at_once(factors, labels, is_used):
    states, table, bias = (tf.cast(factor, tf.float32) for factor in factors)
    logits = states @ tf.transpose(table) + bias
    log_probs = tf.nn.log_softmax(logits)
    hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == labels, tf.float32)
    losses = -tf.gather(log_probs, labels, batch_dims=1)
    return tf.where(is_used, tf.stack([losses, -tf.reduce_mean(log_probs, -1), hits]), 0.0)


# The gradients of both losses: of a sum, a sum with smoothed labels, and anything else.
SLOPES = {
    "sum": np.array([[0.7], [0.0]]) * np.ones(COUNT),
    "smoothed": np.array([[0.63], [0.07]]) * np.ones(COUNT),
    "any": np.random.default_rng(1).normal(size=(2, COUNT)),
}


def with_gradients(function, factors, labels, is_used, slopes="any"):
    with tf.GradientTape() as tape:
        tape.watch(factors)
        scores = function(factors, labels, is_used)
        total = tf.reduce_sum(scores[:2] * tf.constant(SLOPES[slopes], tf.float32))
    return scores, tape.gradient(total, factors)


def chunked(factors, labels, is_used, training=True):
    return module.label_scores(*factors, labels, is_used, training)


@pytest.mark.parametrize(
    "slopes, training, jit_compile, share",
    [
        ("sum", True, True, 0.4),
        ("sum", True, False, 1.0),
        ("sum", False, True, 0.0),
        ("any", True, False, 0.0),
        ("any", True, True, 1.0),
        ("any", False, False, 0.4),
        ("smoothed", True, True, 0.4),
    ],
)
def test_scores_and_gradients_are_those_of_all_at_once(slopes, training, jit_compile, share):
    given = inputs(share)
    own_scores = functools.partial(chunked, training=training)
    function = tf.function(
        lambda *given: with_gradients(own_scores, *given, slopes),
        jit_compile=jit_compile,
        autograph=False,
    )
    expected, others = with_gradients(all_at_once, *given, slopes)
    found, own = function(*given)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for slope, other in zip(own, others, strict=True):
        np.testing.assert_allclose(slope, other, atol=1e-5 * float(1 + tf.reduce_max(abs(other))))


@pytest.mark.parametrize("slopes", SLOPES)
def test_half_precision_keeps_float32_losses(slopes):
    given = inputs(0.7, "bfloat16")
    found, own = with_gradients(chunked, *given, slopes)
    expected, others = with_gradients(all_at_once, *given, slopes)
    assert found.dtype == tf.float32 and own[0].dtype == own[1].dtype == tf.bfloat16
    # A score is rounded to bfloat16 in a partial sum and at the end, each by 2^-9 of the sum of its
    # absolute products at most, and a loss is the difference of two things that move so.
    states, table, bias = (tf.abs(tf.cast(factor, tf.float32)) for factor in given[0])
    most = tf.reduce_max(states @ tf.transpose(table) + bias)
    np.testing.assert_allclose(found[0], expected[0], atol=4 * 2.0**-9 * float(most))
    for slope, other in zip(own, others, strict=True):
        slope, other = (tf.cast(values, tf.float32) for values in (slope, other))
        np.testing.assert_allclose(slope, other, atol=0.03 * float(tf.reduce_max(abs(other))))


def gradients_in_float64(states, table, bias, labels, slope):
    """Those of the states, the table and the bias, for `slope` times the sum of all losses."""
    logits = states @ table.T + bias
    changes = np.exp(logits - logits.max(axis=1, keepdims=True))
    changes /= changes.sum(axis=1, keepdims=True)
    changes[np.arange(len(labels)), labels] -= 1
    changes *= slope
    return changes @ table, changes.T @ states, changes.sum(axis=0)


@pytest.mark.parametrize("training", (False, True))
def test_the_loss_scale_keeps_gradients_of_rare_tokens_in_float16(training):
    """Their probabilities of about 1e-8 are 0 in float16, unless they are scaled before."""
    scale, common = 2.0**10, 30
    (states, table, bias), labels, is_used = inputs(1.0, "float16")
    factors = [0.3 * states, table, tf.where(np.arange(TOKENS) < common, bias, -14.0)]
    labels = labels % common
    with tf.GradientTape() as tape:
        tape.watch(factors)
        loss = tf.reduce_sum(chunked(factors, labels, is_used, training)[0]) * scale
    own = [tf.cast(slopes, tf.float64).numpy() for slopes in tape.gradient(loss, factors)]
    exact = [tf.cast(factor, tf.float64).numpy() for factor in factors]
    others = gradients_in_float64(*exact, labels.numpy(), scale)
    for slopes, expected in zip(own, others, strict=True):
        np.testing.assert_allclose(slopes, expected, atol=0.005 * np.abs(expected).max())
    rare, expected = own[1][common:], others[1][common:]
    np.testing.assert_allclose(rare, expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("slopes, computations", (("sum", 1), ("smoothed", 1), ("any", 2)))
def test_scores_are_computed_once_for_a_sum(slopes, computations, monkeypatch):
    """Eagerly each chunk is a call; 150 predictions are five chunks of 32."""
    product, calls = module._Chunks._product, []
    monkeypatch.setattr(
        module._Chunks, "_product", lambda *given: calls.append(None) or product(*given)
    )
    with_gradients(chunked, *inputs(1.0), slopes)
    assert len(calls) == 5 * computations


def sizes_in(graph):
    """Yields the number of entries of every tensor of a graph and of the functions it calls."""
    for function in [graph, *graph._functions.values()]:  # bodies of loops
        body = getattr(function, "graph", function)
        for operation in body.get_operations():
            for tensor in operation.outputs:
                if tensor.shape.is_fully_defined():
                    yield tensor.shape.num_elements()


def test_no_tensor_has_all_scores():
    """Neither forward nor backward, in the step and in its loops; all at once, one has."""
    given, most = inputs(1.0), {}
    for name, function in (("chunked", chunked), ("all", all_at_once)):
        traced = tf.function(with_gradients, autograph=False).get_concrete_function(
            function, *given
        )
        most[name] = max(sizes_in(traced.graph))
    assert most["all"] >= COUNT * TOKENS
    assert most["chunked"] < COUNT * TOKENS / 2


@pytest.mark.parametrize("objectives", ("bidirectional", "permutation"))
def test_masked_lm_of_many_scores_has_the_same_loss_hits_and_gradients(objectives, monkeypatch):
    """A weight of 0, smoothed labels; "many" is a matter of the shape alone."""
    mixture, found = ObjectiveMixture.from_text(objectives), []
    keras.utils.set_random_seed(3)
    model = mixture.model(narrow_config("rotary", num_hidden_layers=1, hidden_dropout_prob=0.0))
    given, loss = batch(), mixture.loss(False, label_smoothing=0.1)
    best = tf.argmax(model(loss.inputs(given))["masked_lm_logits"], -1, tf.int32)
    given["masked_lm_ids"] = tf.where([[True, False, False]], best, given["masked_lm_ids"])
    for most in (module.MOST_SCORES, given["masked_lm_ids"].shape.num_elements() * 40 - 1):
        monkeypatch.setattr(module, "MOST_SCORES", most)
        outputs = model(loss.inputs(given), all_outputs=True)
        slopes, losses = gradients(model, loss, given, training=False)
        found.append((outputs, [*slopes, *losses.values(), *loss.metrics(outputs, given).values()]))
    assert "masked_lm_logits" in found[0][0] and "masked_lm_logits" not in found[1][0]
    assert 0 < found[0][1][-1].sum < found[0][1][-1].weight  # hits
    for once, chunks in zip(*(values for _, values in found), strict=True):
        # A sum over the 40 tokens may be rounded 40 times.
        one = 40 * 2.0**-24
        np.testing.assert_allclose(np.hstack(chunks), np.hstack(once), atol=one, rtol=one)
