"""Law of resuming: from the checkpoint of any step a run ends as if nothing had been.

What is in no checkpoint is known by its being left over: the run goes on in the objects that have
already trained to the end. That programs go on alike is seen in `test_resume`.
"""

import contextlib
import json
from typing import NamedTuple

import keras
import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from records import CONFIG_OF_NUMBERS, write_numbers

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import recipe
from nezha_tf.training.batch_sizes import BatchSizes
from nezha_tf.training.loop import Feed
from nezha_tf.training.saving import training_state

BATCH = 4


class Trained(NamedTuple):
    """The parts of a recipe: the run's state by name, and its initial values."""

    reader: object
    model: keras.Model
    average: object
    step: object
    state: dict
    beginning: dict

    def results(self):
        """Returns the results of the run: its state, and the weights to evaluate."""
        with self.average.in_place() if self.average else contextlib.nullcontext():
            weights = {variable.path: variable.numpy() for variable in self.model.weights}
        return {**values_of(self.state), **weights}


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Returns a function from settings to `Trained`, cached because tracing is slow."""
    folder, made = tmp_path_factory.mktemp("data"), {}
    (folder / "config.json").write_text(json.dumps(CONFIG_OF_NUMBERS))
    standard = {
        "bert_config_file": str(folder / "config.json"),
        "output_dir": str(folder / "run"),
        "input_file": ",".join(write_numbers(folder, 9, 6)),  # an epoch is 4 batches or 3
        "max_seq_length": 8,
        "max_predictions_per_seq": 2,
        "train_batch_size": BATCH,
        "num_train_steps": 20,
        "num_warmup_steps": 4,
        "learning_rate": 1e-2,
        "initial_loss_scale": 2.0**16,  # one or two steps overflow
        "loss_scale_growth_steps": 2,
        "do_train": True,
        "jit_compile": True,
    }

    def make(changes):
        key = tuple(changes.values())
        if key not in made:
            made[key] = trained(PretrainingSettings(**standard, **changes))
        return made[key]

    return make


def trained(settings):
    keras.utils.set_random_seed(1)
    task = Pretraining(settings)
    model = task.make_model(settings.precision)
    parts = recipe.make(settings, model, task.rate_factors)
    objective = task.make_training_objective()
    step = recipe.make_step(settings, tf.distribute.get_strategy(), model, objective, parts)
    average = parts.moving_average
    averages = average.state() if average else {}
    state = training_state(model, parts.optimizer, counters=step.state(), averages=averages)
    return Trained(task.train_reader, model, average, step, state, values_of(state))


def values_of(state):
    return {name: variable.numpy() for name, variable in state.items()}


def go_on(run, seed, last, save=None):
    """Trains until a step from the current one; `save` is called before each step."""
    feed = Feed(tf.distribute.get_strategy(), run.reader, BatchSizes(BATCH), seed)
    batches = feed.batches(run.step.count("batches_read"))
    while run.step.step < last:
        if save:
            save(run.step.step)
        run.step.on_batch(next(batches))


def recipes():
    """Draws flags that affect what must be saved; those that need most come first."""
    return st.fixed_dictionaries(
        {
            "optimizer": st.sampled_from(["lamb", "adamw"]),
            "gradient_accumulation_steps": st.sampled_from([2, 1]),
            "ema_decay": st.sampled_from([0.9, 0.0]),
            "precision": st.sampled_from(["mixed_float16", "mixed_bfloat16", "float32"]),
            "objectives": st.sampled_from(["bidirectional,seq2seq", "bidirectional"]),
        }
    )


# On a processor bfloat16 is compiled in parts.
IN_PARTS = {
    "optimizer": "adamw",
    "gradient_accumulation_steps": 2,
    "ema_decay": 0.0,
    "precision": "mixed_bfloat16",
    "objectives": "bidirectional",
}


@laws.examples(1)
@example(IN_PARTS, {3}, 1)
@given(recipes(), st.sets(st.integers(0, 7), min_size=1, max_size=2), st.integers(0, 2**32 - 1))
def test_a_run_that_goes_on_is_one_that_was_never_stopped(
    make, tmp_path_factory, changes, at, seed
):
    """Weights, moments, averages, loss scale, counters and dropout generators, with XLA."""
    run, folder = make(changes), tmp_path_factory.mktemp("run")
    checkpoints = {step: RunCheckpoints(str(folder / str(step)), run.state) for step in at}
    for name, value in run.beginning.items():
        run.state[name].assign(value)
    go_on(run, seed, 8, lambda step: step in at and checkpoints[step].save(step))
    expected = run.results()
    for step, kept in checkpoints.items():
        assert kept.restore_newest() == kept.path(step) and run.step.step == step
        go_on(run, seed, 8)
        for name, value in run.results().items():
            np.testing.assert_array_equal(value, expected[name], name)
