"""The losses of classification against NumPy, by hand for each example."""

import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.tasks.classification.loss import ClassificationLoss, MultiLabelLoss, RegressionLoss

# The last example is only padding.
MASK = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]])
LOGITS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32) * 3


def found(objective, logits, label_ids, dtype=tf.int32):
    """Returns (loss, metrics, predictions) of the batch."""
    batch = {"input_mask": tf.constant(MASK, tf.int32), "label_ids": tf.constant(label_ids, dtype)}
    outputs = {"logits": tf.constant(logits)}
    losses = objective.losses(outputs, batch)
    assert losses.keys() == objective.loss_weights(batch).keys() == {"classification_loss"}
    assert np.array_equal(objective.loss_weights(batch)["classification_loss"], [1, 1, 1, 0])
    loss = losses["classification_loss"]
    assert float(loss.weight) == 3
    return float(loss.sum), objective.metrics(outputs, batch), objective.predictions(outputs)


@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_one_class_of_several(smoothing):
    labels = [2, 0, 1, 0]
    loss, metrics, predictions = found(ClassificationLoss(smoothing), LOGITS, labels)
    expected = right = 0
    for row in range(3):
        shares = np.exp(LOGITS[row].astype(np.float64))
        shares /= shares.sum()
        wanted = np.full(3, smoothing / 3)
        wanted[labels[row]] += 1 - smoothing
        expected -= wanted @ np.log(shares)
        right += shares.argmax() == labels[row]
        np.testing.assert_allclose(predictions["probabilities"][row], shares, atol=1e-6)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert float(metrics["accuracy"].sum) == right and float(metrics["accuracy"].weight) == 3


@pytest.mark.parametrize("smoothing", (0.0, 0.2))
def test_any_of_several_classes(smoothing):
    labels = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]])
    objective = MultiLabelLoss(smoothing)
    loss, metrics, predictions = found(objective, LOGITS, labels)
    shares = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    wanted = np.where(labels, 1 - smoothing / 2, smoothing / 2)
    each = -(wanted * np.log(shares) + (1 - wanted) * np.log(1 - shares))
    assert loss == pytest.approx(each[:3].sum() / 3, rel=1e-5) and not metrics
    np.testing.assert_allclose(predictions["probabilities"], shares, atol=1e-6)


def test_a_number():
    logits, labels = LOGITS[:, :1], np.array([0.5, -1.0, 2.0, 9.0])
    loss, metrics, predictions = found(RegressionLoss(), logits, labels, tf.float32)
    assert loss == pytest.approx(((logits[:3, 0] - labels[:3]) ** 2).sum(), rel=1e-5)
    assert not metrics and np.array_equal(predictions["value"], logits[:, 0])
