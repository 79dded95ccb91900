"""Which tokens an output depends on, through the whole encoder, by gradients."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from small_encoders import narrow_config

from nezha_tf import NezhaEncoder, attention_mask
from nezha_tf.config import POSITION_ENCODINGS, SEGMENT_IDS

LENGTH = 7
# For each of two examples: the number of tokens before padding, and where the target begins.
NUM_TOKENS, TARGET_START = (7, 5), (3, 2)


def may_depend(objective, example, output, given):
    """Whether an output may depend on an input, by the definitions of the objectives."""
    if output == given:
        return True
    if given >= NUM_TOKENS[example]:
        return False
    if objective == "left_to_right":
        return given < output
    if objective == "right_to_left":
        return given > output
    if objective == "seq2seq":
        return given < TARGET_START[example] or TARGET_START[example] <= given < output
    return True


@functools.cache
def gradients_of(encoding):
    """Returns a function of inputs that gives the Jacobian of an encoder, [2, T, D, T, D]."""
    tf.keras.utils.set_random_seed(0)
    encoder = NezhaEncoder(narrow_config(encoding, num_hidden_layers=2))

    @tf.function
    def gradients(inputs):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, all_outputs=True)
        return tape.batch_jacobian(outputs["sequence_output"], outputs["embedding_output"])

    return gradients


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
@pytest.mark.parametrize("objective", ("bidirectional", "left_to_right", "right_to_left"))
def test_gradients_stay_in_their_packed_text(objective, encoding):
    text_ids = np.array([[1, 1, 1, 2, 2, 3, 3], [1, 2, 2, 2, 2, 0, 0]], "int32")
    input_mask = tf.constant(text_ids > 0, tf.int32)
    ranks = getattr(attention_mask, f"{objective}_ranks")(input_mask)
    mask = attention_mask.from_ranks(ranks, input_mask, tf.constant(text_ids))
    assert mask.numpy().any(axis=-1).all()  # no row of the softmax is empty
    inputs = {
        "input_ids": tf.constant(np.random.default_rng(0).integers(5, 30, (2, LENGTH)), tf.int32),
        "input_mask": input_mask,
        "segment_ids": tf.zeros((2, LENGTH), tf.int32),
        "text_ids": tf.constant(text_ids),
        "attention_mask": mask,
    }
    found = tf.reduce_max(tf.abs(gradients_of(encoding)(inputs)), axis=(2, 4)).numpy()
    for example in range(2):
        for output in range(NUM_TOKENS[example]):
            for given in range(LENGTH):
                is_own = text_ids[example, output] == text_ids[example, given]
                may = is_own and may_depend(objective, example, output, given)
                slope = found[example, output, given]
                assert slope > 1e-6 if may else slope == 0, (example, output, given)


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
@pytest.mark.parametrize(
    "objective", ("bidirectional", "left_to_right", "right_to_left", "seq2seq")
)
def test_gradients_obey_the_mask(objective, encoding):
    """Exactly zero where the objective forbids it, and not zero where it allows it."""
    index = np.arange(LENGTH)
    input_mask = tf.constant(index < np.array(NUM_TOKENS)[:, None], tf.int32)
    is_target = index >= np.array(TARGET_START)[:, None]
    segments = SEGMENT_IDS[objective]
    segment_ids = tf.constant(np.where(is_target, segments[1], segments[0]), tf.int32)
    arguments = (input_mask, segment_ids) if objective == "seq2seq" else (input_mask,)
    mask = getattr(attention_mask, objective)(*arguments)
    inputs = {
        "input_ids": tf.constant(np.random.default_rng(0).integers(5, 30, (2, LENGTH)), tf.int32),
        "input_mask": input_mask,
        "segment_ids": segment_ids,
        # One shape for all objectives, so that the Jacobian is traced once.
        "attention_mask": tf.broadcast_to(mask, (2, 1, LENGTH, LENGTH)),
    }
    found = tf.reduce_max(tf.abs(gradients_of(encoding)(inputs)), axis=(2, 4)).numpy()
    for example in range(2):
        for output in range(NUM_TOKENS[example]):
            for given in range(LENGTH):
                slope = found[example, output, given]
                if may_depend(objective, example, output, given):
                    assert slope > 1e-6, (example, output, given)
                else:
                    assert slope == 0, (example, output, given)
