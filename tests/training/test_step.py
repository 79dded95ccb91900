"""The training step: the same for all numbers of replicas, micro-batches and compilers."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from helpers import load_golden_model, random_batch

from nezha_tf import Lamb, NezhaForPreTraining
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.data.record_stream import untuned
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.training.devices import part_random_states
from nezha_tf.training.evaluation import make_eval_step
from nezha_tf.training.recipe import DynamicLossScale, Recipe
from nezha_tf.training.saving import random_states
from nezha_tf.training.step import TrainStep

CONFIG = dataclasses.replace(load_golden_model("nezha_tiny").config, num_hidden_layers=1)
BATCH = random_batch(CONFIG)
SIZE = len(BATCH["input_ids"])


def replicas(count):
    if count == 1:
        return tf.distribute.get_strategy()
    # Collective sums of two sizes in one process fail.
    sums = tf.distribute.ReductionToOneDevice() if count == 3 else None
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)], sums)


def new_step(
    strategy, loss_scale=None, training=False, jit_compile=False, dtype="float32", **recipe
):
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = NezhaForPreTraining(CONFIG, dtype=dtype)
        scale = loss_scale and DynamicLossScale(loss_scale, 1000)
        step = TrainStep(
            strategy,
            model,
            Bidirectional().loss(),
            Recipe(Lamb(1e-3), clip_norm=0.5, loss_scale=scale, **recipe),
            jit_compile=jit_compile,
            training=training,
        )
    return model, step, scale


def feed(strategy, batch=BATCH):
    """Yields the batch without end, each time with its examples in another order."""
    order = np.random.default_rng(1).permutation(SIZE)
    two = {name: np.concatenate([v, v.numpy()[order]]) for name, v in batch.items()}
    part = SIZE // strategy.num_replicas_in_sync
    dataset = tf.data.Dataset.from_tensor_slices(two).repeat().batch(part, drop_remainder=True)
    dataset = untuned(dataset)
    return iter(strategy.distribute_datasets_from_function(lambda _: dataset))


def weights_after_20_steps(count=1, **settings):
    strategy = replicas(count)
    model, step, _ = new_step(strategy, **settings)
    batches = feed(strategy)
    if count == 3:
        report = step.on_batch(next(batches))
        for _ in range(19):
            report = report.then(step.on_batch(next(batches)))
    else:
        report = step.run(batches, 15).then(step.run(batches, 5))
    assert step.step == 20 and report.gradient_norm > 0.5  # so that clipping matters
    assert report.examples == 20 * SIZE
    assert report.places == 20 * tf.size(BATCH["input_mask"]).numpy()
    values = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    return values, {name: float(ratio.over(ratio.weight)) for name, ratio in report.ratios.items()}


@pytest.fixture(scope="module")
def one_device():
    return weights_after_20_steps()


@pytest.mark.parametrize(
    "settings",
    (
        {"count": 3, "accumulation_steps": 2},
        {"count": 2, "jit_compile": True, "accumulation_steps": 2},
    ),
    ids=str,
)
def test_weights_do_not_depend_on_how_a_batch_is_computed(one_device, settings):
    """With LAMB, clipping, padding, and predictions that are uneven over the replicas."""
    weights, metrics = weights_after_20_steps(**settings)
    for name, value in weights.items():
        np.testing.assert_allclose(value, one_device[0][name], atol=1e-5, rtol=0, err_msg=name)
    for name, value in metrics.items():
        assert value == pytest.approx(one_device[1][name], rel=1e-4), name


def test_bfloat16_whose_parts_are_compiled_is_the_same_in_replicas_and_micro_batches(one_device):
    settings = {"jit_compile": True, "dtype": "mixed_bfloat16"}
    _, metrics = weights_after_20_steps(count=2, accumulation_steps=2, **settings)
    for name, value in one_device[1].items():
        assert metrics[name] == pytest.approx(value, rel=0.02), name


def test_a_fault_on_the_second_replica_skips_the_step_on_all():
    strategy = replicas(2)
    model, step, scale = new_step(strategy, loss_scale=32.0)
    good_batches = feed(strategy)
    step.run(good_batches, 1)
    for faults, fault in enumerate((np.inf, np.nan)):
        weights = BATCH["masked_lm_weights"].numpy()
        weights[-1, 0] = fault
        bad_batches = feed(strategy, {**BATCH, "masked_lm_weights": tf.constant(weights)})
        before = [variable.numpy() for variable in model.weights]
        report = step.run(bad_batches, 2)
        assert report.skipped == 2 and step.count("skipped_steps") == 2 * (faults + 1)
        assert step.step == 1 + faults and step.count("skipped_in_a_row") == 2
        assert step.count("batches_read") == 3 * (faults + 1)
        assert tf.convert_to_tensor(scale.scale) == 8.0 / 4**faults
        assert 0 <= int(report.bad_gradient) < len(step.variables)
        for old, variable in zip(before, model.weights, strict=True):
            for copy in strategy.experimental_local_results(variable.value):
                np.testing.assert_array_equal(copy, old)
        step.run(good_batches, 1)
        assert step.count("skipped_in_a_row") == 0 and step.step == 2 + faults
        assert step.count("skipped_steps") == 2 * (faults + 1)
        for variable in model.weights:
            first, second = strategy.experimental_local_results(variable.value)
            np.testing.assert_array_equal(first, second)


def test_a_skipped_step_leaves_the_averages_of_its_interval_alone():
    _, step, _ = new_step(replicas(1), loss_scale=8.0)
    bad = {**BATCH, "masked_lm_weights": BATCH["masked_lm_weights"] * float("inf")}
    good = step.on_batch(BATCH)
    both = good.then(step.on_batch(bad))
    for name, ratio in both.ratios.items():
        assert float(ratio.sum) == float(good.ratios[name].sum), name
    assert both.gradient_norm == good.gradient_norm and both.skipped == 1
    assert both.examples == 2 * SIZE


def test_a_batch_without_a_pair_that_counts_is_trained_on():
    """In UniLM's mixture, only bidirectional examples have a next sentence."""
    model = NezhaForPreTraining(dataclasses.replace(CONFIG, type_vocab_size=6))
    loss = ObjectiveMixture({"bidirectional": 1.0, "left_to_right": 1.0}).loss(of_pairs=True)
    step = TrainStep(replicas(1), model, loss, Recipe(Lamb(1e-3)))
    report = step.on_batch({**BATCH, "objective_ids": tf.ones((SIZE, 1), tf.int32)})
    assert report.skipped == 0 and 0 < report.gradient_norm < np.inf
    assert report.ratios["next_sentence_loss"].weight == 0


def test_replicas_draw_dropout_of_their_own():
    strategy = replicas(2)
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = NezhaForPreTraining(dataclasses.replace(CONFIG, hidden_dropout_prob=0.5))
    states = random_states(model)

    @tf.function
    def outputs():
        inputs = Bidirectional().loss().inputs(BATCH)
        return strategy.run(
            lambda: model(inputs, training=True, all_outputs=True)["sequence_output"]
        )

    first, second = strategy.experimental_local_results(outputs())
    np.testing.assert_array_equal(first, second)  # Keras does this by itself
    before = [state.numpy() for state in states]
    part_random_states(strategy, states)
    for old, state in zip(before, states, strict=True):
        np.testing.assert_array_equal(
            state.numpy(), old
        )  # the state of the first replica, which is saved
    first, second = strategy.experimental_local_results(outputs())
    assert np.mean(np.isclose(first, second)) < 0.01


def test_evaluation_over_replicas_is_that_of_the_whole_batch():
    values = []
    for count in (1, 3):
        strategy = replicas(count)
        model, _, _ = new_step(strategy)
        step = make_eval_step(strategy, model, Bidirectional().loss())
        ratios = step(next(feed(strategy)))
        values.append({name: float(ratio.over(ratio.weight)) for name, ratio in ratios.items()})
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_examples_that_are_padding_count_for_nothing():
    model, _, _ = new_step(replicas(1))
    step = make_eval_step(replicas(1), model, Bidirectional().loss())
    padded = {name: tf.pad(v, [(0, 2), (0, 0)]) for name, v in BATCH.items()}
    for name, ratio in step(padded).items():
        assert float(ratio.over(ratio.weight)) == pytest.approx(
            float(step(BATCH)[name].over(step(BATCH)[name].weight)), rel=1e-5
        )
