"""The loss of an answer's start and end against NumPy; padding changes nothing."""

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.tasks.reading_comprehension.loss import AnswerSpanLoss

LENGTHS = (7, 4, 1, 0)


def figures(length):
    """Returns logits and a batch of four windows; the last one is only padding."""
    rng = np.random.default_rng(0)
    logits = {f"{end}_logits": 3 * rng.normal(size=(4, 7)) for end in ("start", "end")}
    logits = {n: np.pad(v, [(0, 0), (0, length - 7)], constant_values=9) for n, v in logits.items()}
    mask = np.arange(length) < np.array(LENGTHS)[:, None]
    return logits, {
        "input_mask": mask.astype(np.int32),
        "start_positions": np.array([2, 3, 0, 0], np.int32),
        "end_positions": np.array([5, 3, 0, 0], np.int32),
    }


def tensors(values):
    return {
        name: tf.constant(v, "int32" if v.dtype == np.int32 else "float32")
        for name, v in values.items()
    }


@pytest.mark.parametrize("smoothing, length", ((0.0, 12), (0.1, 7), (0.1, 12)))
def test_loss_and_accuracy_are_numpys(smoothing, length):
    logits, batch = figures(length)
    objective = AnswerSpanLoss(smoothing)
    arguments = tensors(logits), tensors(batch)
    (loss,) = objective.losses(*arguments).values()
    (accuracy,) = objective.metrics(*arguments).values()

    total = right = 0
    for row, tokens in enumerate(LENGTHS[:3]):
        is_right = True
        for end in ("start", "end"):
            scores = logits[f"{end}_logits"][row, :tokens]
            log_probs = scores - np.log(np.exp(scores).sum())
            wanted = np.full(tokens, smoothing / tokens)
            wanted[batch[f"{end}_positions"][row]] += 1 - smoothing
            total -= (wanted * log_probs).sum() / 2
            is_right &= scores.argmax() == batch[f"{end}_positions"][row]
        right += is_right
    assert float(loss.sum) == pytest.approx(total, rel=1e-5)
    assert float(loss.weight) == float(accuracy.weight) == 3
    assert float(accuracy.sum) == right and 0 < right < 3
    assert objective.loss_weights(tensors(batch)).keys() == objective.losses(*arguments).keys()
