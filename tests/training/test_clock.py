"""Runs whose length is given in minutes: the rate, the end, and how they go on."""

import dataclasses
import json
import os
import signal
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
import toy_task
from commands import PRETRAINING, assert_each_one_line, run_pretraining
from helpers import load_golden_model, random_batch
from schedule_courses import COURSES
from toy_finetuning import settings_in
from toy_task import ToyTask, interrupted

from nezha_tf import NezhaForPreTraining
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.optimization.schedules import SCHEDULES
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training import clock as clocks
from nezha_tf.training import recipe
from nezha_tf.training.clock import Clock
from nezha_tf.training.run import run
from nezha_tf.training.settings import RunSettings
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import Terminated, UserError

CONFIG = dataclasses.replace(load_golden_model("nezha_tiny").config, num_hidden_layers=1)
BATCH = random_batch(CONFIG)


def replicas(count):
    if count == 1:
        return tf.distribute.get_strategy()
    # Collective sums of two sizes in one process fail.
    sums = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)], sums)


@pytest.fixture
def time(monkeypatch):
    """The seconds that the system's clock shows, a variable to set."""
    seconds = tf.Variable(1e9, dtype=tf.float64)
    monkeypatch.setattr(clocks, "now", lambda: tf.identity(seconds))
    return seconds


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_is_that_of_the_time_whatever_the_step(time, name):
    settings = RunSettings(
        train_minutes=10.0, warmup_proportion=0.4, schedule=name, learning_rate=1e-3
    )
    clock = Clock(replicas(1), 10.0)
    schedule = recipe.make(settings, NezhaForPreTraining(CONFIG), {}, clock).optimizer
    clock.start()
    for minute, share in zip((0, 2, 4, 6, 8, 9, 10), COURSES[name], strict=True):
        time.assign(1e9 + 60 * minute)
        assert bool(clock.tick()) == clock.has_time == (minute < 10)
        assert clock.left == 10 - minute
        assert float(schedule.learning_rate) == pytest.approx(1e-3 * share, abs=1e-9)


def test_a_clock_stands_is_set_back_and_goes_on(time):
    clock = Clock(replicas(1), 10.0)
    time.assign_add(600)
    assert clock.tick() and float(clock.minutes) == 0  # It has not been started.
    clock.start()
    time.assign_add(120)
    clock.tick()
    time.assign_add(-3600)
    assert clock.tick() and float(clock.minutes) == 2
    time.assign_add(3600 + 60)
    clock.tick(False)  # of a step that was skipped
    assert float(clock.minutes) == 2
    clock.tick()
    assert float(clock.minutes) == 3
    clock.stop()
    time.assign_add(7200)
    clock.start()
    time.assign_add(60)
    clock.tick()
    assert float(clock.minutes) == pytest.approx(4)


def test_the_default_warmup():
    assert recipe.course(RunSettings(train_minutes=30.0)) == (30.0, 3.0)
    assert recipe.course(RunSettings(train_minutes=30.0, warmup_proportion=0.0)) == (30.0, 0.0)


def test_two_replicas_follow_the_first_ones_clock():
    strategy = replicas(2)
    clock = Clock(strategy, 10.0)
    numbers = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([3.0, 7.0][context.replica_id_in_sync_group])
    )
    assert float(tf.function(clock._of_first)(numbers)) == 3.0


# How long each step takes.
SECONDS = np.random.default_rng(5).integers(1, 30, 60)


def new_step(strategy, monkeypatch, minutes, jit_compile=False):
    """Returns a step whose system's clock depends on the number of updates alone."""
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = NezhaForPreTraining(CONFIG)
    clock = Clock(strategy, minutes)
    with strategy.scope():
        settings = RunSettings(
            train_minutes=minutes, warmup_proportion=0.25, schedule="cosine", optimizer="adamw"
        )
        parts = recipe.make(settings, model, {}, clock)
        step = TrainStep(strategy, model, Bidirectional().loss(), parts, jit_compile=jit_compile)
    shown = tf.constant(1e9 + np.cumsum([0, *SECONDS]), tf.float64)
    updates = parts.optimizer.iterations
    monkeypatch.setattr(clocks, "now", lambda: tf.gather(shown, tf.convert_to_tensor(updates)))
    clock.start()
    return step


def batches_of(strategy):
    part = len(BATCH["input_ids"]) // strategy.num_replicas_in_sync
    dataset = tf.data.Dataset.from_tensor_slices(BATCH).repeat().batch(part, drop_remainder=True)
    return iter(strategy.distribute_datasets_from_function(lambda _: dataset))


@pytest.mark.parametrize(
    "count, num_replicas, jit_compile", ((1, 1, False), (7, 1, True), (5, 2, False))
)
def test_each_step_has_the_rate_of_its_time_and_the_last_ends_the_budget(
    monkeypatch, count, num_replicas, jit_compile
):
    """However many steps are made between two returns to Python, and on any number of replicas."""
    strategy, minutes = replicas(num_replicas), 4.0
    step = new_step(strategy, monkeypatch, minutes, jit_compile)
    batches, used, expected = batches_of(strategy), 0.0, []
    while used < 60 * minutes:
        share = used / (60 * minutes)
        cosine = (1 + np.cos(np.pi * (share - 0.25) / 0.75)) / 2
        expected.append(5e-5 * (share / 0.25 if share < 0.25 else cosine))
        used += SECONDS[len(expected) - 1]
    made = 0
    while step.clock.has_time:
        report = step.run(batches, count)
        made += int(report.steps)
        assert float(report.learning_rate) == pytest.approx(expected[made - 1], rel=1e-4, abs=1e-10)
    assert made == step.step == len(expected) < len(SECONDS)
    assert float(step.clock.minutes) == pytest.approx(used / 60)
    for copy in strategy.experimental_local_results(step.clock.state()["nezha_tf/train_minutes"]):
        assert float(copy) == float(step.clock.minutes)


def test_a_run_does_not_end_with_a_step_that_was_skipped(monkeypatch):
    step = new_step(replicas(1), monkeypatch, minutes=0.01)
    bad = {**BATCH, "masked_lm_weights": BATCH["masked_lm_weights"] * float("inf")}
    both = tf.data.Dataset.from_tensor_slices(
        {name: tf.stack([bad[name], bad[name], BATCH[name]]) for name in BATCH}
    )
    report = step.run(iter(both.repeat()), 10)
    assert (int(report.steps), int(report.skipped), step.step) == (3, 2, 1)


# Runs of the toy task: an epoch has 3 steps, with an evaluation each.
CHANGES = {"learning_rate": 0.01, "keep_checkpoint_max": 9, "log_steps": 1, "do_predict": False}
CHANGES["num_train_epochs"] = 3.0  # the default, which does not count


@pytest.fixture
def data(tmp_path):
    toy_task.write_files(tmp_path)
    return tmp_path


@pytest.fixture
def system(monkeypatch):
    """A system's clock by which each step takes 15 s.

    Attributes:
      add: the seconds that have passed besides.
      free: the updates after which another first step comes.
      is_sweep: whether later runs use the first one's compiled parts.
    """
    system = types.SimpleNamespace(add=tf.Variable(0.0, dtype=tf.float64), free=())
    system.is_sweep, system.updates = False, None
    make = recipe.make

    def noted(*arguments):
        parts = make(*arguments)
        if not (system.is_sweep and system.updates is not None):
            system.updates = parts.optimizer.iterations
        return parts

    def now():
        updates = tf.convert_to_tensor(system.updates)
        # The first step of a start is not counted, so it takes as long as it likes.
        counted = updates - sum(tf.cast(updates > each, updates.dtype) for each in system.free)
        return 15.0 * tf.cast(counted, tf.float64) + system.add

    monkeypatch.setattr(recipe, "make", noted)
    monkeypatch.setattr(clocks, "now", now)
    return system


def tensors_in(out, step):
    reader = tf.train.load_checkpoint(str(out / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def steps_in(out):
    return RunCheckpoints(str(out), {}).steps()


def course_of(out):
    names = ("step", "loss", "eval_loss", "learning_rate", "train_minutes")
    return [{n: entry[n] for n in names if n in entry} for entry in read_metrics(str(out))]


def kill():
    raise KeyboardInterrupt


def stop():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("act, error, free", ((kill, KeyboardInterrupt, 3), (stop, Terminated, 4)))
def test_a_run_that_is_stopped_and_goes_on_has_the_same_course(data, system, act, error, free):
    """The first step after a start takes no time of the budget: in the whole run it takes none."""
    settings = [
        settings_in(data, data / name, train_minutes=2.375, steps_per_loop=1, **CHANGES)
        for name in ("whole", "stopped")
    ]
    system.free = (free,)
    run(settings[0], ToyTask)
    system.free = ()
    with pytest.raises(error):
        run(settings[1], interrupted(1, act))
    assert steps_in(data / "stopped")[-1] == free
    run(settings[1], ToyTask)
    # One step that is not counted, ten of 15 s, and the first one of the new start.
    last = steps_in(data / "whole")[-1]
    assert last == steps_in(data / "stopped")[-1] == 12
    one, other = course_of(data / "whole"), course_of(data / "stopped")
    assert one == other
    first, second = (tensors_in(data / name, last) for name in ("whole", "stopped"))
    assert first.keys() == second.keys() and "nezha_tf/train_minutes" in first
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], name)


def test_a_run_whose_time_ends_in_an_evaluation_has_nothing_left(data, system, capsys):
    out = data / "out"
    settings = settings_in(data, out, train_minutes=10.0, **CHANGES)
    run(settings, interrupted(2, lambda: system.add.assign_add(3600)))
    assert steps_in(out) == [3, 6]
    assert tensors_in(out, 6)["nezha_tf/train_minutes"] > 60
    assert [entry["step"] for entry in read_metrics(str(out)) if "eval_loss" in entry] == [3, 6]
    capsys.readouterr()
    run(settings, ToyTask)
    assert f"nothing to train: {out}/model.ckpt-6 is at step 6 already" in capsys.readouterr().out
    # With more time it goes on, and is told as changed.
    run(settings_in(data, out, train_minutes=61.8, **CHANGES), ToyTask)
    assert "--train_minutes 61.8 (was 10.0)" in capsys.readouterr().out
    assert steps_in(out)[-1] > 6


def test_each_run_of_a_sweep_has_the_minutes(data, system):
    changes = {**CHANGES, "learning_rate": ("0.01",), "num_seeds": 2, "train_minutes": 1.25}
    system.is_sweep = True
    sweep.run(settings_in(data, data / "sweep", **changes), ToyTask)
    folders = [path.parent for path in (data / "sweep").rglob("run.flags")]
    assert len(folders) == 2
    # One step that is not counted, and five of 15 s.
    assert [steps_in(folder)[-1] for folder in folders] == [6, 6]


def test_a_run_by_steps_cannot_go_on_by_the_clock(data):
    run(settings_in(data, data / "out", num_train_steps=2, **CHANGES), ToyTask)
    with pytest.raises(UserError, match=r"lacks nezha_tf/train_minutes .* on --train_minutes"):
        run(settings_in(data, data / "out", train_minutes=1.0, **CHANGES), ToyTask)


@pytest.mark.processes
def test_a_command_ends_within_a_step_of_its_time(folder):
    minutes = 0.1
    changes = (f"--train_minutes={minutes}", "--do_eval", "--eval_file=eval.tfrecord")
    changes += ("--save_checkpoints_steps=40", "--max_eval_steps=2", "--warmup_proportion=0.5")
    changes += ("--num_warmup_steps=10000",)  # the default
    result = run_pretraining(folder, *changes)
    assert result.returncode == 0, result.stderr
    entries = [entry for entry in read_metrics(str(folder / "run")) if "loss" in entry]
    shown = [entry["train_minutes"] for entry in entries]
    newest = str(folder / "run" / f"model.ckpt-{steps_in(folder / 'run')[-1]}")
    used = tf.train.load_variable(newest, "nezha_tf/train_minutes")
    # On a slow machine the time ends in an evaluation, behind the last line of the log.
    assert shown[-2] < minutes <= used and shown[-1] <= used
    # TensorBoard's files have times of their own.
    (events,) = (folder / "run" / "summaries").iterdir()
    times = {}
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        times.setdefault(event.step, event.wall_time)
    passed = times[entries[-1]["step"]] - times[entries[0]["step"]]
    assert passed == pytest.approx(60 * shown[-1], abs=1.0)
    assert f"step {entries[-1]['step']}  " in result.stdout and "left 0.0 min" in result.stdout
    assert "--num_train_steps" not in (folder / "run" / "run.flags").read_text()
    results = json.loads((folder / "run" / "eval_results.json").read_text())
    assert results["global_step"] == steps_in(folder / "run")[-1] == entries[-1]["step"]
    again = run_pretraining(folder, *changes)
    assert "nothing to train" in again.stdout


def test_mistakes(folder):
    minutes = "--train_minutes=5"
    mistakes = (
        ([minutes, "--num_train_steps=7"], ["--num_train_steps=7 does nothing with", minutes]),
        ([minutes, "--num_warmup_steps=7"], ["--num_warmup_steps=7 does nothing with", minutes]),
        (["--train_minutes=0"], ["--train_minutes=0 must be above 0"]),
        ([minutes, "--warmup_proportion=1"], ["--warmup_proportion=1 leaves no time"]),
        (
            [minutes, "--schedule=trapezoid", "--decay_proportion=0.95"],
            ["--decay_proportion=0.95 begins the decay in the warmup, which is 0.1 of the run"],
        ),
    )
    standard = (*PRETRAINING, "--num_warmup_steps=10000")
    assert_each_one_line("run_pretraining.py", standard, mistakes, folder)
