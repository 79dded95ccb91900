"""Fine-tuning's loss against NumPy, and the dependencies of a target's predictions."""

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf import NezhaConfig
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.tasks.seq2seq.loss import Seq2SeqLoss

CONFIG = NezhaConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    type_vocab_size=6,
    initializer_range=0.5,
)
SOURCES, ENDS, T = np.array([4, 6]), np.array([9, 8]), 10


@pytest.fixture(scope="module")
def model():
    return NezhaForMaskedLM(CONFIG)


def make_batch():
    """Two pairs; every position of the target, and the source's last one, predicts something."""
    rng = np.random.default_rng(0)
    places = np.arange(T)
    is_token = places < ENDS[:, None]
    segments = np.where(places < SOURCES[:, None], 4, 5) * is_token
    positions = SOURCES[:, None] - 1 + np.arange(6)
    weights = positions < ENDS[:, None]
    return {
        "input_ids": rng.integers(0, 30, (2, T)) * is_token,
        "input_mask": is_token,
        "segment_ids": segments,
        "masked_lm_positions": positions * weights,
        "masked_lm_ids": rng.integers(0, 30, (2, 6)),
        "masked_lm_weights": weights,
    }


def tensors(batch):
    floats = ("masked_lm_weights",)
    return {n: tf.constant(v, tf.float32 if n in floats else tf.int32) for n, v in batch.items()}


def logits_of(model, batch):
    objective = Seq2SeqLoss()
    return model(objective.inputs(tensors(batch)))["masked_lm_logits"].numpy()


def test_loss_and_accuracy_are_numpys(model, smoothing=0.1):
    batch = make_batch()
    objective = Seq2SeqLoss(smoothing)
    outputs = model(objective.inputs(tensors(batch)), all_outputs=True)
    (loss,) = objective.losses(outputs, tensors(batch)).values()
    (accuracy,) = objective.metrics(outputs, tensors(batch)).values()

    total = right = count = 0
    logits = outputs["masked_lm_logits"].numpy().astype(np.float64)
    for row, place in zip(*np.nonzero(batch["masked_lm_weights"]), strict=True):
        scores, label = logits[row, place], batch["masked_lm_ids"][row, place]
        log_probs = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
        wanted = np.full(30, smoothing / 30)
        wanted[label] += 1 - smoothing
        total -= (wanted * log_probs).sum()
        right += scores.argmax() == label
        count += 1
    assert float(loss.sum) == pytest.approx(total, rel=1e-5)
    assert float(loss.weight) == float(accuracy.weight) == count
    assert float(accuracy.sum) == right
    assert objective.loss_weights(batch).keys() == objective.losses(outputs, tensors(batch)).keys()


def test_a_prediction_sees_the_source_and_what_is_left_of_it(model):
    """Each token is changed in turn: only the logits that may see it change."""
    batch = make_batch()
    before = logits_of(model, batch)
    for row in range(2):
        for place in range(T):
            changed = {name: values.copy() for name, values in batch.items()}
            changed["input_ids"][row, place] = (batch["input_ids"][row, place] + 1) % 30
            moved = np.abs(logits_of(model, changed) - before).max(axis=-1) > 1e-6
            for query in range(6):
                position = batch["masked_lm_positions"][row, query]
                if batch["masked_lm_weights"][row, query]:
                    is_seen = place < SOURCES[row] or place <= position
                    assert moved[row, query] == (is_seen and place < ENDS[row])
            assert not moved[1 - row].any()
