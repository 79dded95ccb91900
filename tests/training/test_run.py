"""Runs that end at an evaluation, or go on from an earlier checkpoint, on a toy task."""

import json
import os
import pathlib
import shutil
import signal
import time

import laws
import pytest
import tensorflow as tf
import toy_task
from hypothesis import given
from hypothesis import strategies as st
from toy_finetuning import settings_in
from toy_task import ToyTask, interrupted

from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.run_checkpoints import BEST_FILE, RunCheckpoints
from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.training import devices
from nezha_tf.training.loop import _Profile
from nezha_tf.training.run import run
from nezha_tf.util.errors import Terminated, UserError

# Three evaluations; the rate is so high that the last is not the best.
CHANGES = {"learning_rate": 0.03, "num_train_epochs": 3.0, "keep_checkpoint_max": 9}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """The folder of a run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run(settings_in(data, out, **CHANGES), ToyTask)
    return out


def evaluations(out):
    """Returns {step: the entry of its evaluation}; there is one of each step."""
    found = [entry for entry in read_metrics(str(out)) if "eval_loss" in entry]
    assert len({entry["step"] for entry in found}) == len(found)
    return {entry["step"]: entry for entry in found}


def kill():
    raise KeyboardInterrupt


def assert_is_made_good(settings, whole):
    """Asserts that the same command ends as a run that nothing interrupted."""
    out = pathlib.Path(settings.output_dir)
    run(settings, ToyTask)
    assert evaluations(out) == evaluations(whole) and len(evaluations(out)) == 3
    for name in (BEST_FILE, "eval_results.json", "predictions.json"):
        assert (out / name).read_text() == (whole / name).read_text(), name


def test_what_a_start_waits_for_is_told_once(data, tmp_path, capsys):
    steps = {"num_train_steps": 7, "save_checkpoints_steps": 5, "steps_per_loop": 2}
    changes = {"learning_rate": 0.01, "do_predict": False, **steps}
    run(settings_in(data, tmp_path / "out", **changes), ToyTask)
    lines = capsys.readouterr().out.splitlines()
    begun = [line for line in lines if line.startswith("step 2/7  loss ")]
    assert len(begun) == 1 and begun[0].endswith("s; the next line comes at step 5")
    told = ["reading the data", "tracing the training step"]
    assert lines.index(told[0]) < lines.index(told[1]) < lines.index(begun[0])
    assert all(lines.count(line) == 1 for line in told)
    assert not [line for line in lines if line.startswith("compiling it with XLA")]
    # What is traced is compiled when it is run first.
    run(settings_in(data, tmp_path / "compiled", **changes, jit_compile=True), ToyTask)
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index(told[1]) + 1].startswith("compiling it with XLA")


@pytest.mark.parametrize("number", (1, 2))  # the last one: see below
def test_an_evaluation_that_was_killed_is_made_good(data, tmp_path, whole, number):
    out = tmp_path / "out"
    settings = settings_in(data, out, **CHANGES)
    with pytest.raises(KeyboardInterrupt):
        run(settings, interrupted(number, kill))
    assert len(evaluations(out)) == number - 1
    assert_is_made_good(settings, whole)


def test_a_signal_in_the_last_evaluation_ends_the_run(data, tmp_path, whole):
    out = tmp_path / "out"
    settings = settings_in(data, out, **CHANGES)
    task = interrupted(3, lambda: os.kill(os.getpid(), signal.SIGTERM))
    last = max(evaluations(whole))
    with pytest.raises(Terminated, match=f"stopped by SIGTERM at step {last}; .*-{last}; the same"):
        run(settings, task)
    assert not (out / "predictions.json").exists()
    assert_is_made_good(settings, whole)


def test_workers_meet_when_all_is_written(data, tmp_path, monkeypatch):
    """Before they read the folder: a slow disk must not give them an older checkpoint."""
    out, met, write, agree_on = tmp_path / "out", [], tf1.write_tensors, devices.agree_on

    def slowly(*arguments):
        time.sleep(0.5)
        write(*arguments)

    def noted(strategy, number):
        met.append(RunCheckpoints(str(out), {}).steps())
        return agree_on(strategy, number)

    class Reading(ToyTask):
        def predict(self, model):
            met.append("read")
            return super().predict(model)

    monkeypatch.setattr(tf1, "write_tensors", slowly)
    monkeypatch.setattr(devices, "agree_on", noted)
    changes = {"learning_rate": 0.01, "num_train_epochs": 1.0, "do_eval": False}
    run(settings_in(data, out, **changes), Reading)
    (step,) = RunCheckpoints(str(out), {}).steps()
    assert met[met.index("read") - 1] == [step]


def test_memory_that_is_not_enough_is_told_with_its_flag(data, tmp_path, whole):
    """In a run that has nothing left to train."""

    def fill():
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\nmore")

    class Predicting(ToyTask):
        def write_predictions(self, outputs):
            fill()

    for task, flag in ((interrupted(1, fill), "eval"), (Predicting, "predict")):
        out = shutil.copytree(whole, tmp_path / flag)
        (out / "eval_results.json").unlink()
        told = rf"^out of memory \(OOM when allocating\); lower --{flag}_batch_size$"
        with pytest.raises(UserError, match=told):
            run(settings_in(data, out, **CHANGES), task)


@laws.examples(30)
@given(st.data())
def test_the_best_after_going_back_is_the_best_of_what_is_there(tmp_path_factory, drawn):
    folder = str(tmp_path_factory.mktemp("run"))
    values = drawn.draw(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=6))
    state = {"x": tf.Variable(1.0)}
    kept = RunCheckpoints(folder, state, keep_max=drawn.draw(st.integers(1, 7)))
    for step, value in enumerate(values, start=1):
        kept.save(step)
        kept.note_evaluation(step, {"loss": value})
    best = kept.best()
    back = drawn.draw(st.sampled_from([0, *kept.steps()]))
    for step in kept.steps():
        if step > back:
            for ending in (".index", ".data-00000-of-00001"):
                os.remove(kept.path(step) + ending)
    left = kept.steps()
    entries = [{"step": n, "eval_loss": v} for n, v in enumerate(values, start=1)]
    RunCheckpoints(folder, state, keep_max=7, is_chief=False).go_back(back, entries)
    assert RunCheckpoints(folder, {}).best() == best
    again = RunCheckpoints(folder, state, keep_max=7)
    again.go_back(back, entries)
    if best["global_step"] > back:
        found = [(values[step - 1], step) for step in left]
        best = None
        if found:
            value, step = min(found)
            best = {"global_step": step, "loss": value}
    assert again.best() == RunCheckpoints(folder, {}).best() == best
    assert again.steps() == left


def test_a_run_from_an_earlier_checkpoint_does_not_keep_the_old_best(data, tmp_path, whole):
    out = shutil.copytree(whole, tmp_path / "out")
    settings = settings_in(data, out, **CHANGES)
    later = sorted(evaluations(out))[1:]
    best = {"global_step": later[-1], "accuracy": 2.0}  # better than any that can come
    (out / BEST_FILE).write_text(json.dumps(best))
    for step in later:
        os.remove(f"{RunCheckpoints(str(out), {}).path(step)}.index")
    run(settings, ToyTask)
    found = json.loads((out / BEST_FILE).read_text())
    scores = {step: entry["eval_accuracy"] for step, entry in evaluations(out).items()}
    assert found["accuracy"] == max(scores.values()) == scores[found["global_step"]]


def test_a_first_step_that_comes_again_is_profiled_once(tmp_path):
    with _Profile((0, 1), str(tmp_path)) as profile:
        for step in (0, 0, 1):
            profile.at(step)
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))
