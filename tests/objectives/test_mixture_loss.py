"""The mixture's masks, weights and metrics against single examples."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import random_batch

from nezha_tf import NezhaConfig, NezhaForPreTraining
from nezha_tf.config import SEGMENT_IDS
from nezha_tf.modeling import attention_mask
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.mixture import ObjectiveMixture

NAMES = tuple(SEGMENT_IDS)
UNILM = ObjectiveMixture(dict.fromkeys(NAMES, 1.0))
CONFIG = NezhaConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    type_vocab_size=6,
)


@pytest.fixture(scope="module")
def batch():
    """Twelve examples of the four objectives in turn, and a thirteenth of padding only."""
    batch = random_batch(CONFIG)
    batch = {name: np.concatenate([v, np.zeros_like(v[:1])]) for name, v in batch.items()}
    for row in range(12):
        first, second = SEGMENT_IDS[NAMES[row % 4]]
        is_second = np.arange(24) >= 2 + row // 2
        batch["segment_ids"][row] = np.where(is_second, second, first) * batch["input_mask"][row]
    batch["objective_ids"] = np.array([[row % 4] for row in range(12)] + [[0]], np.int32)
    return {name: tf.constant(values) for name, values in batch.items()}


def row_of(batch, row):
    return {name: values[row : row + 1] for name, values in batch.items()}


def test_each_example_has_its_objectives_mask(batch):
    found = UNILM.loss(of_pairs=True).inputs(batch)["attention_mask"]
    for row in range(12):
        name, alone = NAMES[row % 4], row_of(batch, row)
        arguments = (alone["input_mask"],)
        arguments += (alone["segment_ids"],) if name == "seq2seq" else ()
        expected = getattr(attention_mask, name)(*arguments)
        np.testing.assert_array_equal(found[row], expected[0], name)
    assert not np.any(found[12])


def test_losses_and_metrics_are_those_of_each_example(batch):
    keras.utils.set_random_seed(3)
    model, objective = NezhaForPreTraining(CONFIG), UNILM.loss(of_pairs=True)
    outputs = model(objective.inputs(batch))
    found = {**objective.losses(outputs, batch), **objective.metrics(outputs, batch)}
    plain, sums = Bidirectional().loss(), {}
    for row in range(12):
        name, alone = NAMES[row % 4], row_of(batch, row)
        inputs = plain.inputs(alone)
        arguments = (alone["input_mask"],)
        arguments += (alone["segment_ids"],) if name == "seq2seq" else ()
        inputs["attention_mask"] = getattr(attention_mask, name)(*arguments)
        its_outputs = model(inputs)
        parts = {**plain.losses(its_outputs, alone), **plain.metrics(its_outputs, alone)}
        for key, ratio in parts.items():
            if key.startswith("next_sentence") and name != "bidirectional":
                continue
            keys = [key] if key.startswith("next_sentence") else [key, f"{key}/{name}"]
            for each in keys:
                sums[each] = sums.get(each, 0) + np.array([ratio.sum, ratio.weight])
    assert set(found) == set(sums)
    for key, ratio in found.items():
        np.testing.assert_allclose([ratio.sum, ratio.weight], sums[key], rtol=1e-5, err_msg=key)
    assert sums["next_sentence_loss"][1] == 3


def test_a_batch_without_a_bidirectional_example_is_trained_on(batch):
    """There is no next sentence to predict, so its gradient is 0 and not nan."""
    rows = [row for row in range(12) if NAMES[row % 4] != "bidirectional"]
    batch = {name: tf.gather(values, rows) for name, values in batch.items()}
    model = NezhaForPreTraining(CONFIG)
    gradients = []
    for of_pairs in (True, False):
        objective = UNILM.loss(of_pairs)
        with tf.GradientTape() as tape:
            losses = objective.losses(model(objective.inputs(batch)), batch)
            loss = sum(ratio.over(ratio.weight) for ratio in losses.values())
        gradients.append(tape.gradient(loss, model.encoder.embeddings.trainable_variables))
    assert np.isfinite(loss) and losses.keys() == {"masked_lm_loss"}
    for with_pairs, without in zip(*map(tf.nest.flatten, gradients), strict=True):
        with_pairs, without = map(tf.convert_to_tensor, (with_pairs, without))
        np.testing.assert_allclose(with_pairs, without, atol=1e-7)


def test_label_smoothing_is_of_what_is_trained_alone(batch):
    model = NezhaForPreTraining(CONFIG)
    smooth, plain = (UNILM.loss(True, share) for share in (0.2, 0.0))
    outputs = model(plain.inputs(batch))
    # An untrained model gives equal probabilities, for which smoothing changes nothing.
    outputs["masked_lm_logits"] = 30.0 * outputs["masked_lm_logits"]
    losses = [float(o.losses(outputs, batch)["masked_lm_loss"].sum) for o in (smooth, plain)]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)
    name = "masked_lm_loss/seq2seq"
    sums = [float(o.metrics(outputs, batch)[name].sum) for o in (smooth, plain)]
    assert sums[0] == sums[1]
