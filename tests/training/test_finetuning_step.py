"""R-Drop and adversarial training in the step: gradients against two passes by hand."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from toy_task import CONFIG, LABELS, ToyObjective

from nezha_tf import NezhaConfig
from nezha_tf.data.record_stream import untuned
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.optimization.base import MomentOptimizer
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.training.recipe import DynamicLossScale, Recipe
from nezha_tf.training.step import TrainStep, perturbation_along

# All tokens differ, also those of padding; the last example is only padding.
LENGTHS = (6, 3, 5, 0)
BATCH = {
    "input_ids": tf.reshape(tf.range(24), (4, 6)) + 2,
    "segment_ids": tf.zeros((4, 6), tf.int32),
    "input_mask": tf.sequence_mask(LENGTHS, 6, tf.int32),
    "label_ids": tf.constant([1, 0, 1, 0]),
}
EXAMPLES = 3
EPSILON, ALPHA, SECOND_HALF = 0.5, 2.0, 1.5
IN_PARTS = {"replicas": 2, "accumulation_steps": 2}


class Descent(MomentOptimizer):
    """With beta_1 0 and rate 1, a step is the gradient."""

    slot_names = {"m": "adam_m", "v": "adam_v"}  # noqa: RUF012
    variants = ("plain",)

    def _step(self, weights, gradient, m, v, count, decay):
        return m, ops.ones((), weights.dtype)


class HalvesDiffer(NezhaForSequenceClassification):
    """A stand-in for dropout: the two halves of a batch have different logits."""

    def outputs(self, inputs, training=False):
        outputs = super().outputs(inputs, training)
        rows = ops.shape(outputs["logits"])[0]
        factors = ops.where(ops.arange(rows) < rows // 2, 1.0, SECOND_HALF)
        outputs["logits"] = outputs["logits"] * factors[:, None]
        return outputs


def new_model(model_class=NezhaForSequenceClassification, **settings):
    keras.utils.set_random_seed(3)
    return model_class(NezhaConfig.from_dict(CONFIG), LABELS, **settings)


def gradients_of_step(
    objective,
    model_class,
    replicas=1,
    loss_scale=None,
    precision="float32",
    jit_compile=False,
    **settings,
):
    """Returns the change of each variable by a step, which is the gradient."""
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        # Collective sums of two sizes in one process fail.
        sums = tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], sums)
    with strategy.scope():
        model = new_model(model_class, dtype=precision)
        optimizer = Descent(1.0, "plain", beta_1=0.0)
        scale = loss_scale and DynamicLossScale(loss_scale, 1000)
        recipe = Recipe(optimizer, clip_norm=1e9, loss_scale=scale, **settings)
        step = TrainStep(
            strategy, model, objective, recipe, jit_compile=jit_compile, training=False
        )
    before = [variable.numpy() for variable in model.trainable_variables]
    dataset = tf.data.Dataset.from_tensor_slices(BATCH).repeat().batch(4 // replicas)
    dataset = untuned(dataset)
    batch = next(iter(strategy.distribute_datasets_from_function(lambda _: dataset)))
    assert step.on_batch(batch).skipped == 0
    after = [variable.numpy() for variable in model.trainable_variables]
    return [old - new for old, new in zip(before, after, strict=True)]


def assert_close(found, expected, tolerance=1e-5):
    most = max(np.abs(value).max() for value in expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance * most, rtol=0)


def gradients_by_hand(model, loss_of):
    inputs = {name: values[:EXAMPLES] for name, values in BATCH.items()}
    with tf.GradientTape() as tape:
        loss = loss_of(model(inputs), BATCH["label_ids"][:EXAMPLES])
    variables = [variable.value for variable in model.trainable_variables]
    return [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, variables)]


def mean_cross_entropy(logits, labels):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)


def with_r_drop(logits, labels):
    other = logits * SECOND_HALF
    p, q = ops.softmax(logits), ops.softmax(other)
    divergence = keras.losses.KLDivergence()
    both = [mean_cross_entropy(logits, labels), mean_cross_entropy(other, labels)]
    return sum(both) / 2 + ALPHA * (divergence(p, q) + divergence(q, p)) / 2


@pytest.fixture(scope="module")
def adversarial_by_hand():
    return both_passes_by_hand()


def both_passes_by_hand():
    """The rows of the table are moved; each belongs to one token of one example."""
    model = new_model()
    table = model.encoder.embeddings.word_embeddings
    first = gradients_by_hand(model, mean_cross_entropy)
    index = [variable is table for variable in model.trainable_variables].index(True)
    moved, rise = table.numpy(), first[index]
    for ids in BATCH["input_ids"].numpy()[:EXAMPLES]:
        moved[ids] += EPSILON * rise[ids] / np.linalg.norm(rise[ids])
    table.assign(moved)
    second = gradients_by_hand(model, mean_cross_entropy)
    assert max(np.abs(a - b).max() for a, b in zip(first, second, strict=True)) > 0.01
    return [a + b for a, b in zip(first, second, strict=True)]


@pytest.mark.parametrize("way", (IN_PARTS, {"loss_scale": 1024.0, "jit_compile": True}), ids=str)
def test_adversarial_gradients(way, adversarial_by_hand):
    found = gradients_of_step(
        ToyObjective(), NezhaForSequenceClassification, adversarial_epsilon=EPSILON, **way
    )
    assert_close(found, adversarial_by_hand)


def test_adversarial_gradients_of_narrow_embeddings(monkeypatch):
    """ALBERT's: the perturbation is as wide as they are, not as the layers."""
    for key, value in (("embedding_size", CONFIG["hidden_size"] // 2), ("num_hidden_groups", 1)):
        monkeypatch.setitem(CONFIG, key, value)
    found = gradients_of_step(
        ToyObjective(), NezhaForSequenceClassification, adversarial_epsilon=EPSILON
    )
    assert_close(found, both_passes_by_hand())


def test_adversarial_gradients_in_float16(adversarial_by_hand):
    way = {"precision": "mixed_float16", "loss_scale": 1024.0, "adversarial_epsilon": EPSILON}
    found = gradients_of_step(ToyObjective(), NezhaForSequenceClassification, **way)
    assert_close(found, adversarial_by_hand, tolerance=0.02)


def test_gradients_of_r_drop_in_parts():
    """Each part of the batch is doubled, and still the loss is the mean over the whole batch."""
    found = gradients_of_step(RDrop(ToyObjective(), ALPHA), HalvesDiffer, **IN_PARTS)
    assert_close(found, gradients_by_hand(new_model(), with_r_drop))


def test_gradients_of_a_mixture_of_layers_in_parts():
    mixed = functools.partial(NezhaForSequenceClassification, layer_mix=True)
    found = gradients_of_step(ToyObjective(), mixed, **IN_PARTS)
    expected = gradients_by_hand(new_model(mixed), mean_cross_entropy)
    assert len(expected) == 6  # the two of the mixture, of the pooler and of the head
    assert_close(found, expected)


def test_a_perturbation_has_its_length_however_small_the_gradient():
    rise = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    rise[1] *= 1e-30
    rise[2] = 0
    found = perturbation_along(tf.constant(rise), 0.25).numpy()
    lengths = np.linalg.norm(found.reshape(3, -1), axis=-1)
    np.testing.assert_allclose(lengths, [0.25, 0.25, 0], rtol=1e-5)
    np.testing.assert_allclose(found[0] * np.linalg.norm(rise[0]), 0.25 * rise[0], rtol=1e-5)
    for fault in (np.nan, np.inf):
        rise[0, 0, 0] = fault
        assert np.isnan(perturbation_along(tf.constant(rise), 0.25).numpy()).any()
