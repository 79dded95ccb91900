"""The last layer computes only what is read: the same losses and gradients as of all places."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from objective_gradients import LENGTH, PREDICTIONS, batch, gradients
from small_encoders import narrow_config

from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.training.recipe import recompute_layers

UNILM = "bidirectional,left_to_right,right_to_left,seq2seq"
PRE = {"norm_position": "pre", "norm": "rms_norm", "feed_forward": "geglu", "use_bias": False}
SHARED = {"num_hidden_groups": 1, "embedding_size": 6}
CASES = (
    *(("bidirectional", encoding, {}, 0) for encoding in POSITION_ENCODINGS),
    (UNILM, "functional_relative", PRE, 0),
    (UNILM, "rotary", SHARED, 0),
    ("permutation", "functional_relative", {}, 4),
    ("permutation", "learned_relative", PRE, 0),
)


class AllPlaces:
    """A loss whose model is not told what is read."""

    def __init__(self, loss):
        self._loss = loss
        self.losses = loss.losses

    def inputs(self, given):
        inputs = self._loss.inputs(given)
        assert inputs.pop("output_positions").shape[1] == PREDICTIONS + 1
        return inputs


def case(objectives, encoding, changes, memory, is_packed=False):
    mixture, given = ObjectiveMixture.from_text(objectives), batch(memory)
    if is_packed:
        given["text_ids"] = tf.constant([[1] * 4 + [2] * 5, [1] * 2 + [2] * 4 + [0] * 3])
    layers = 1 if memory else 2
    config = narrow_config(
        encoding, num_hidden_layers=layers, max_position_embeddings=64, **changes
    )
    keras.utils.set_random_seed(3)
    return mixture.model(config), mixture.loss("permutation" not in objectives), given


def assert_same(model, loss, given):
    given = {**given, "next_sentence_labels": tf.constant([[0], [1]])}
    (few, few_losses), (every, every_losses) = (
        gradients(model, each, given, training=False) for each in (loss, AllPlaces(loss))
    )
    for name, mean in every_losses.items():
        np.testing.assert_allclose(few_losses[name].sum, mean.sum, rtol=1e-5)
    largest = max(float(tf.reduce_max(abs(gradient))) for gradient in every)
    assert largest > 0.1
    for one, other in zip(few, every, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6 * largest)


@pytest.mark.parametrize("objectives, encoding, changes, memory", CASES)
def test_losses_and_gradients(objectives, encoding, changes, memory):
    assert_same(*case(objectives, encoding, changes, memory))


@pytest.mark.parametrize("encoding", ("functional_relative", "absolute"))
def test_packed_texts(encoding):
    assert_same(*case("bidirectional", encoding, {}, 0, is_packed=True))


def test_recomputed_layers():
    model, loss, given = case("bidirectional", "functional_relative", {}, 0)
    recompute_layers(model)
    assert_same(model, loss, given)


def test_the_last_layer_raises_no_other_states(monkeypatch):
    """Keys and values are of all tokens, so that a memory and a query stream find them."""
    model, loss, given = case("bidirectional", "functional_relative", {}, 0)
    seen, own = [], model.encoder.transformer_layers[-1].feed_forward.call
    monkeypatch.setattr(
        model.encoder.transformer_layers[-1].feed_forward,
        "call",
        lambda states: [seen.append(states.shape[1]), own(states)][1],
    )
    outputs = model(loss.inputs(given), training=True, all_outputs=True)
    assert seen == [1 + PREDICTIONS] == [outputs["sequence_output"].shape[1]]
    assert outputs["encoder_outputs"][0].shape[1] == LENGTH
    assert outputs["keys_and_values"][-1][0].shape[2] == LENGTH


@pytest.mark.parametrize("objectives", ("causal", "bidirectional,causal", "replaced_tokens"))
def test_where_all_places_are_read(objectives):
    changes = {"num_attention_heads": 4, "hidden_size": 16} if "replaced" in objectives else {}
    _, loss, given = case(objectives, "functional_relative", changes, 0)
    assert "output_positions" not in loss.inputs(given) and not loss.reads_few_places


def test_as_many_predictions_as_places_are_read_as_they_are():
    _, loss, given = case("bidirectional", "functional_relative", {}, 0)
    short = {n: v[:, :4] if v.shape[1:] == (LENGTH,) else v for n, v in given.items()}
    assert "output_positions" not in loss.inputs(short) and "output_positions" in loss.inputs(given)


def test_a_mixture_of_layers_has_all_places():
    from nezha_tf import NezhaForPreTraining

    _, loss, given = case("bidirectional", "functional_relative", {}, 0)
    config = narrow_config("functional_relative", num_hidden_layers=2)
    model = NezhaForPreTraining(config, layer_mix=True)
    outputs = model(loss.inputs(given), all_outputs=True)
    assert outputs["sequence_output"].shape[1] == LENGTH
