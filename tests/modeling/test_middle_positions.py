"""Middle layers that compute some tokens: as if the others were not in the text at all."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_encoders import narrow_config

from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.modeling import attention_mask
from nezha_tf.modeling.encoder import NezhaEncoder

LENGTH, LAYERS = 9, 4
# The tokens that nobody sees, at places in and around the others.
SEEN = np.array([[1, 0, 1, 1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 1, 0, 1, 1, 1]])
PRE = {"norm_position": "pre", "norm": "rms_norm", "feed_forward": "swiglu", "use_bias": False}


def encoder(encoding="functional_relative", **changes):
    keras.utils.set_random_seed(4)
    sizes = {"num_hidden_layers": LAYERS, "max_position_embeddings": 64}
    return NezhaEncoder(narrow_config(encoding, **sizes, **changes))


def batch(ranks):
    rng = np.random.default_rng(1)
    tokens = {
        "input_ids": tf.constant(rng.integers(0, 40, (2, LENGTH)), tf.int32),
        "segment_ids": tf.constant(rng.integers(0, 2, (2, LENGTH)), tf.int32),
        "input_mask": tf.constant(SEEN, tf.int32),
    }
    mask = attention_mask.from_ranks(ranks(tokens["input_mask"]), tokens["input_mask"])
    return {**tokens, "attention_mask": mask}


def chosen(size):
    """Returns the places of all seen tokens and of some others in each row, for two layers."""
    unseen_first = np.argsort(SEEN, axis=1, kind="stable")[:, ::-1]
    places = np.sort(unseen_first[:, :size], axis=1)
    return tf.constant(np.concatenate([places, places], axis=1), tf.int32)


def states_and_gradients(model, inputs):
    is_seen = tf.cast(inputs["input_mask"][..., None], tf.float32)
    with tf.GradientTape() as tape:
        states = model(inputs, training=True)["sequence_output"] * is_seen
        loss = tf.reduce_sum(states * tf.cos(tf.range(8, dtype=tf.float32)))
    return states, tape.gradient(loss, model.trainable_variables)


@pytest.mark.parametrize("size", (6, 8))
@pytest.mark.parametrize(
    "encoding, changes", [*((name, {}) for name in POSITION_ENCODINGS), ("rotary", PRE)]
)
@pytest.mark.parametrize("ranks", ("bidirectional_ranks", "left_to_right_ranks"))
def test_unseen_tokens_need_no_computation(encoding, changes, ranks, size):
    """What nobody sees may pass by: places, masks and states of the others stay as they are."""
    model = encoder(encoding, hidden_dropout_prob=0.0, **changes)
    for layer in model.transformer_layers:
        layer.attention.dropout.rate = 0.0
    inputs = batch(getattr(attention_mask, ranks))
    states, gradients = states_and_gradients(model, inputs)
    few, of_few = states_and_gradients(model, {**inputs, "middle_positions": chosen(size)})
    assert np.abs(states).max() > 1
    np.testing.assert_allclose(few, states, rtol=1e-5, atol=2e-5)
    pairs = [
        (tf.convert_to_tensor(one), tf.convert_to_tensor(other))
        for one, other in zip(of_few, gradients, strict=True)
        if other is not None  # the pooler is not read
    ]
    largest = max(float(tf.reduce_max(abs(other))) for _, other in pairs)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6 * largest)


@pytest.mark.parametrize("is_recomputed", (False, True))
def test_other_tokens_pass_by(is_recomputed):
    model = encoder()
    if is_recomputed:
        for layer in model.transformer_layers:
            layer.recompute = True
    inputs = batch(attention_mask.bidirectional_ranks)
    places = tf.constant([[1, 4, 2, 3], [0, 8, 5, 6]])
    outputs = model({**inputs, "middle_positions": places}, training=True, all_outputs=True)
    states = [tf.convert_to_tensor(state).numpy() for state in outputs["encoder_outputs"]]
    for layer, (before, after) in enumerate(itertools.pairwise(states[:3])):
        is_same = (before == after).all(axis=-1)
        for row in range(2):
            own = places[row, 2 * layer : 2 * layer + 2].numpy()
            assert sorted(set(range(LENGTH)) - set(np.flatnonzero(is_same[row]))) == sorted(own)
    # The last layer computes all of them.
    assert not (states[2] == states[3]).all(axis=-1).any()


def test_with_packed_texts():
    """Texts of a row still do not see each other."""
    model = encoder("absolute")
    tokens = batch(attention_mask.bidirectional_ranks)
    texts = tf.constant([[1] * 4 + [2] * 5, [1] * 5 + [2] * 4])
    inputs = {
        "input_ids": tokens["input_ids"],
        "segment_ids": tokens["segment_ids"],
        "input_mask": tf.ones_like(texts),
        "text_ids": texts,
        "middle_positions": tf.constant([[0, 2, 3, 5, 8] * 2] * 2),
    }
    other = tf.where(texts == 2, (inputs["input_ids"] + 7) % 40, inputs["input_ids"])
    states, changed = (
        model({**inputs, "input_ids": ids})["sequence_output"].numpy()
        for ids in (inputs["input_ids"], other)
    )
    is_first = texts.numpy() == 1
    np.testing.assert_allclose(states[is_first], changed[is_first], atol=1e-6)
    assert np.abs(states - changed)[~is_first].max() > 0.1
