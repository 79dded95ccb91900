"""Evaluation and prediction of examples with several sequences, against NumPy for each one."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.objectives.losses import weighted
from nezha_tf.tasks.finetuning import evaluation
from nezha_tf.tasks.finetuning.evaluation import PredictingEvaluation, make_reader, predict

LONGEST = 40


class Sums(keras.Model):
    """A model without weights: it sums the tokens of each sequence."""

    def call(self, inputs, training, all_outputs):
        return {"scores": tf.reduce_sum(inputs["input_ids"] * inputs["input_mask"], axis=-1)}


class HighestSum:
    """An objective: which sequence of an example is the right one."""

    def inputs(self, batch):
        return {name: batch[name] for name in ("input_ids", "input_mask")}

    def losses(self, outputs, batch):
        is_example = tf.cast(batch["input_mask"][:, 0, 0], tf.float32)
        right = tf.argmax(outputs["scores"], axis=-1, output_type=tf.int32) == batch["label_ids"]
        return {"wrong": weighted(1 - tf.cast(right, tf.float32), is_example)}

    def metrics(self, outputs, batch):
        return {}

    def predictions(self, outputs):
        return {"scores": outputs["scores"]}


class Measured:
    """A stand-in for a task; its metrics are the outputs."""

    def __init__(self, **settings):
        self.settings = types.SimpleNamespace(eval_batch_size=6, jit_compile=False, **settings)

    def make_objective(self, label_smoothing):
        return HighestSum()

    def measure(self, part, outputs):
        return {"outputs": outputs}


@pytest.fixture(scope="module")
def held():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, LONGEST + 1, (23, 4))
    ids = [[rng.integers(1, 99, n).astype("int32") for n in row] for row in lengths]
    return {"input_ids": ids, "label_ids": rng.integers(0, 4, 23).astype("int32")}


def sums_of(held, count):
    return [[int(ids.sum()) for ids in example] for example in held["input_ids"][:count]]


@pytest.mark.parametrize("replicas", (1, 2))
@pytest.mark.parametrize("most", (None, 2))
def test_evaluation_is_of_all_examples_once(held, replicas, most, tmp_path):
    """The last batch is filled up with examples that have no weight."""
    names = [f"CPU:{number}" for number in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())
    task = Measured(max_eval_steps=most, output_dir=str(tmp_path))
    results = PredictingEvaluation(strategy, Sums(), task, ArrayReader(held, LONGEST))()
    sums = sums_of(held, 6 * most if most else 23)
    assert np.array(results["outputs"]["scores"]).tolist() == sums
    wrong = np.mean(np.argmax(sums, axis=-1) != held["label_ids"][: len(sums)])
    assert results["wrong"] == pytest.approx(wrong)


@pytest.mark.parametrize("any_length", (False, True))
def test_predictions_are_in_the_order_of_the_examples(held, any_length):
    reader = ArrayReader({"input_ids": held["input_ids"]}, LONGEST, any_length=any_length)
    outputs = predict(Sums(), HighestSum(), reader, 5, True)
    assert np.array(outputs["scores"]).tolist() == sums_of(held, 23)


def test_a_step_for_any_length_is_traced_once(held, tmp_path):
    strategy, model = tf.distribute.get_strategy(), Sums()
    task = Measured(max_eval_steps=None, output_dir=str(tmp_path))
    reader = make_reader(strategy, model, held, LONGEST, True, jit_compile=True)
    of_all = PredictingEvaluation(strategy, model, task, reader)
    lengths = {batch["input_ids"].shape[-1] for batch in of_all.batches()}
    assert len(lengths) == 4  # as many as batches
    assert np.array(of_all()["outputs"]["scores"]).tolist() == sums_of(held, 23)
    assert of_all.predict_step.experimental_get_tracing_count() == 1


def test_several_replicas_bfloat16_and_many_examples_have_few_lengths(held):
    many = {"input_ids": [np.ones(3, "int32")] * evaluation.LEAST_COMPILED_EXAMPLES}
    strategy = tf.distribute.get_strategy()
    assert not make_reader(strategy, Sums(), many, LONGEST, True, True).any_length
    assert make_reader(strategy, Sums(), many, LONGEST, True, False).any_length
    few = {"input_ids": many["input_ids"][1:]}
    assert make_reader(strategy, Sums(), few, LONGEST, True, True).any_length
    replicas = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice()
    )
    narrow = Sums(dtype="mixed_bfloat16")
    for strategy, model in ((replicas, Sums()), (tf.distribute.get_strategy(), narrow)):
        assert not make_reader(strategy, model, held, LONGEST, True, True).any_length
    assert not make_reader(
        tf.distribute.get_strategy(), Sums(), held, LONGEST, False, True
    ).any_length
