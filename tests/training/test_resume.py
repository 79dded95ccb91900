"""Runs that are killed, stopped or out of disk space continue as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from commands import PRETRAINING, assert_one_line, run_pretraining, start_pretraining
from conftest import REPOSITORY
from tensorflow.python.lib.io import file_io
from terminals import Terminal
from waiting import TIME_LIMIT, ended, wait_until

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.util.errors import STATUS_TERMINATED

pytestmark = pytest.mark.processes

# Dropout is on (the configuration's default), the examples are shuffled, two files.
RUN = ("--input_file=train.tfrecord,eval.tfrecord", "--num_train_steps=40", "--steps_per_loop=4")
RUN += ("--save_checkpoints_steps=2", "--learning_rate=1e-3", "--log_steps=5")


def tensors(folder, step):
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)


@pytest.fixture(scope="module")
def whole_run(prepared):
    """The folder of a run of 40 steps without an interruption."""
    result = run_pretraining(prepared, *RUN, "--output_dir=whole", "--keep_checkpoint_max=20")
    assert result.returncode == 0, result.stderr
    return prepared / "whole"


@pytest.fixture(scope="module")
def uninterrupted(whole_run):
    return tensors(whole_run, 40)


def wait_for_checkpoint(process, folder, beyond=0):
    """Waits until there is a checkpoint of a later step, or the process has ended."""
    wait_until(lambda: any(step > beyond for step in steps(folder)) or process.poll() is not None)


def steps(folder):
    return RunCheckpoints(str(folder), {}).steps()


def test_kill_9_at_any_moment(folder, uninterrupted):
    """Two kills at random times while it trains and saves; then it ends."""
    out, generator, kills = folder / "run", random.Random(4), 0
    while kills < 2:
        last = max(steps(out), default=0)
        process = start_pretraining(folder, *RUN)
        wait_for_checkpoint(process, out, last)
        time.sleep(generator.random() * 0.1)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        if max(steps(out), default=0) == 40:
            break
    result = run_pretraining(folder, *RUN)
    assert result.returncode == 0, result.stderr
    assert kills > 0
    assert_same(tensors(out, 40), uninterrupted)
    assert not [name for name in os.listdir(out) if "tmp" in name]
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == sorted({entry["step"] for entry in entries})


def test_sigterm_saves_and_leaves_with_a_status_of_its_own(folder, uninterrupted):
    process = start_pretraining(folder, *RUN, "--save_checkpoints_steps=4")
    wait_for_checkpoint(process, folder / "run")
    process.terminate()
    result = ended(process)
    assert_one_line(result, "SIGTERM", "the same command continues")
    assert result.returncode == STATUS_TERMINATED
    stopped_at = max(steps(folder / "run"))
    assert f"step {stopped_at}" in result.stderr and stopped_at < 40
    assert run_pretraining(folder, *RUN).returncode == 0
    assert_same(tensors(folder / "run", 40), uninterrupted)


def test_a_closed_terminal_saves_too(folder):
    command = (sys.executable, REPOSITORY / "run_pretraining.py", *PRETRAINING)
    # Too long to end, and without other checkpoints.
    long = ("--num_train_steps=100000", "--save_checkpoints_steps=100000")
    terminal = Terminal((*command, *RUN, *long), folder)
    # Before the first steps there is nothing to save, and a signal ends the program at once.
    wait_until(lambda: "/100000  loss" in terminal.shown(), terminal.process)
    terminal.close()
    assert terminal.process.wait(TIME_LIMIT) == STATUS_TERMINATED
    (step,) = steps(folder / "run")
    result = run_pretraining(folder, *RUN, *long, f"--num_train_steps={step + 2}")
    assert result.returncode == 0, result.stderr
    assert f"continuing from run/model.ckpt-{step}" in result.stdout
    assert steps(folder / "run") == [step, step + 2]


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_taken(
    folder, whole_run, uninterrupted
):
    out = folder / "run"
    shutil.copytree(whole_run, out)
    for step in (40, 38):
        data = out / f"model.ckpt-{step}.data-00000-of-00001"
        damaged = bytearray(data.read_bytes())
        damaged[len(damaged) // 2] ^= 255
        data.write_bytes(damaged if step == 40 else damaged[: len(damaged) // 2])
    result = run_pretraining(folder, *RUN)
    assert result.returncode == 0, result.stderr
    for step in (40, 38):
        assert any(
            f"model.ckpt-{step} is" in line and "trying the checkpoint before" in line
            for line in result.stdout.splitlines()
        )
    assert "continuing from run/model.ckpt-36" in result.stdout
    assert_same(tensors(out, 40), uninterrupted)


def test_checkpoints_that_are_all_damaged_start_no_new_run(folder, two_steps):
    shutil.copytree(two_steps, folder / "run")
    (folder / "run" / "model.ckpt-2.data-00000-of-00001").write_bytes(b"")
    result = run_pretraining(folder, "--num_train_steps=4")
    assert_one_line(result, "model.ckpt-2", "move them away")
    assert steps(folder / "run") == [2]


def test_a_full_disk_leaves_the_checkpoints_intact(folder, two_steps):
    shutil.copytree(two_steps, folder / "run")
    before = tensors(folder / "run", 2)
    size = os.path.getsize(folder / "run" / "model.ckpt-2.data-00000-of-00001")
    result = ended(start_pretraining(folder, "--num_train_steps=4", largest_file=size // 2))
    assert_one_line(result, "model.ckpt-4", "older checkpoints are intact")
    assert steps(folder / "run") == [2]
    assert_same(tensors(folder / "run", 2), before)
    assert not [name for name in os.listdir(folder / "run") if "tmp" in name or "-4" in name]


def test_what_killed_runs_leave_is_cleaned(tmp_path):
    kept = RunCheckpoints(str(tmp_path), {"a": tf.Variable(1.0)})
    kept.save(3)
    before = set(os.listdir(tmp_path))
    for name in (
        "model.ckpt-4.77.tmp.data-00000-of-00001",
        "model.ckpt-4.77.tmp.index",
        "model.ckpt-5.data-00000-of-00001",
        "run.flags.77.tmp",
    ):
        (tmp_path / name).touch()
    # A folder, as a killed --do_export leaves it.
    (tmp_path / "export.77.tmp" / "variables").mkdir(parents=True)
    RunCheckpoints(str(tmp_path), {}, is_chief=False).clean()
    assert set(os.listdir(tmp_path)) != before
    kept.clean()
    assert set(os.listdir(tmp_path)) == before


def test_what_tensorflow_leaves_of_a_killed_run_is_cleaned(tmp_path, monkeypatch):
    """A kill between TensorFlow's temporary file `checkpoint.tmp...` and its final name."""
    kept = RunCheckpoints(str(tmp_path), {"a": tf.Variable(1.0)})
    kept.save(3)
    before = set(os.listdir(tmp_path))

    class Killed(BaseException):
        """Nothing catches it, so nothing tidies up, as after SIGKILL."""

    def killed(*args):
        raise Killed

    monkeypatch.setattr(file_io, "rename", killed)
    with pytest.raises(Killed):
        kept.save(3)
    assert len(set(os.listdir(tmp_path)) - before) == 1
    kept.clean()
    assert set(os.listdir(tmp_path)) == before


def test_the_best_checkpoint_is_kept(tmp_path):
    kept = RunCheckpoints(str(tmp_path), {"a": tf.Variable(1.0)}, keep_max=2)
    losses = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.5, 5: 1.0, 6: 4.0}
    for step, loss in losses.items():
        kept.save(step)
        assert kept.note_evaluation(step, {"loss": loss}) == (step in (1, 2))
    assert kept.steps() == [2, 5, 6]
    assert kept.best() == {"global_step": 2, "loss": 1.0}
    assert not kept.has_stalled(6, 0) and not kept.has_stalled(6, 5) and kept.has_stalled(6, 4)
    kept.save(7)
    kept.note_evaluation(7, {"loss": 0.5})
    assert not kept.has_stalled(7, 4)
    kept.save(8), kept.save(9)
    assert kept.steps() == [7, 8, 9]
    plain = RunCheckpoints(str(tmp_path), {"a": tf.Variable(1.0)}, keep_max=2, keep_best=False)
    plain.save(10)
    assert plain.steps() == [9, 10]
