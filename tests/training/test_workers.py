"""Several workers on this machine: the same as a run of one process, and only one writes."""

import contextlib
import json
import os
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf
from commands import CONFIG, assert_one_line, run_pretraining
from loopback import addresses_of, held_ports, workers
from waiting import ended, wait_until

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.util.errors import STATUS_TERMINATED

pytestmark = pytest.mark.processes

STEPS = 30
RUN = (f"--num_train_steps={STEPS}", "--num_warmup_steps=2", "--learning_rate=1e-3")
RUN += ("--clip_norm=0.5", "--train_batch_size=12", "--save_checkpoints_steps=10", "--log_steps=10")
EVALUATION = ("--do_eval", "--eval_file=eval.tfrecord", "--eval_batch_size=6")


@pytest.fixture
def start_workers(folder):
    """Returns a function of flags that starts two processes, which are killed if the test fails."""
    with contextlib.ExitStack() as stack:
        addresses = addresses_of(stack.enter_context(held_ports(2)))

        def start(*changes, own=None):
            flags = (*RUN, *changes)
            return stack.enter_context(workers(folder, addresses, flags, own))

        yield start


@pytest.fixture(scope="module")
def one_process(tmp_path_factory, prepared):
    """A folder with the data, a configuration without dropout, and a run of one process."""
    folder = tmp_path_factory.mktemp("one_process")
    for name in ("train.tfrecord", "eval.tfrecord"):
        shutil.copy(prepared / name, folder)
    config = {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    result = run_pretraining(folder, *RUN, *EVALUATION, "--output_dir=alone")
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def folder(one_process, tmp_path):
    """A copy of `one_process` for one test."""
    return shutil.copytree(one_process, tmp_path / "folder")


def assert_close(folder, one, other):
    paths = [str(folder / name / f"model.ckpt-{STEPS}") for name in (one, other)]
    readers = list(map(tf.train.load_checkpoint, paths))
    names = readers[0].get_variable_to_shape_map()
    assert names == readers[1].get_variable_to_shape_map()
    for name in names:
        values = [reader.get_tensor(name) for reader in readers]
        np.testing.assert_allclose(*values, atol=1e-5, rtol=0, err_msg=name)


def test_two_workers_reach_the_weights_of_one_process(folder, start_workers):
    chief, other = map(ended, start_workers(*EVALUATION))
    assert chief.returncode == other.returncode == 0, chief.stderr + other.stderr
    assert chief.stderr == other.stderr == other.stdout == ""
    assert "2 replicas" in chief.stdout
    assert_close(folder, "alone", "run")
    assert not [name for name in os.listdir(folder / "run") if "tmp" in name]
    results = [
        json.loads((folder / name / "eval_results.json").read_text()) for name in ("alone", "run")
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-4)
    entries = [(folder / name / "metrics.jsonl").read_text() for name in ("alone", "run")]
    losses = [[json.loads(line).get("loss") for line in text.splitlines()] for text in entries]
    assert len(losses[0]) == 6 and losses[0][::2] == pytest.approx(losses[1][::2], rel=1e-4)


def cut_back(folder, name, step):
    """Deletes the checkpoints of a finished run after a step, as if it had been killed there."""
    for path in (folder / name).glob("model.ckpt-*"):
        if int(path.name.split("-")[1].split(".")[0]) > step:
            path.unlink()


def test_a_run_goes_on_in_another_shape(folder, start_workers):
    """The weights and the place in the data do not depend on workers and micro-batches."""
    shutil.copytree(folder / "alone", folder / "run")
    cut_back(folder, "run", 10)
    results = list(map(ended, start_workers()))
    assert [result.returncode for result in results] == [0, 0], results
    assert "continuing from run/model.ckpt-10" in results[0].stdout
    assert_close(folder, "alone", "run")
    # What two workers have trained goes on in one process.
    cut_back(folder, "run", 20)
    result = run_pretraining(folder, *RUN, "--gradient_accumulation_steps=3")
    assert result.returncode == 0, result.stderr
    assert "continuing from run/model.ckpt-20" in result.stdout
    assert_close(folder, "alone", "run")


def test_sigterm_to_one_worker_stops_all_at_the_same_step(folder, start_workers):
    chief, other = start_workers("--num_train_steps=100000", "--log_steps=2")
    checkpoints = RunCheckpoints(str(folder / "run"), {})
    wait_until(checkpoints.steps, chief)
    os.kill(other.pid, signal.SIGTERM)
    results = [ended(chief), ended(other)]
    assert [result.returncode for result in results] == [STATUS_TERMINATED] * 2, results
    step = checkpoints.steps()[-1]
    assert f"stopped by a signal to another worker at step {step}" in results[0].stderr
    assert f"stopped by SIGTERM at step {step}" in results[1].stderr


def test_workers_end_at_the_same_step_when_the_first_ones_time_is_over(folder, start_workers):
    """The second one's time passes, too, but nobody asks it; both go on from the minutes."""
    changes = ("--train_minutes=0.05", "--num_train_steps=100000", "--num_warmup_steps=10000")
    changes += ("--save_checkpoints_steps=5", "--log_steps=1")
    results = list(map(ended, start_workers(*changes)))
    assert [result.returncode for result in results] == [0, 0], results
    step = RunCheckpoints(str(folder / "run"), {}).steps()[-1]
    reader = tf.train.load_checkpoint(str(folder / "run" / f"model.ckpt-{step}"))
    used = reader.get_tensor("nezha_tf/train_minutes")
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    minutes = [entry["train_minutes"] for entry in map(json.loads, lines) if "loss" in entry]
    # The time may also end in the pause for the last checkpoint, behind the last line of the log.
    assert minutes[-2] < 0.05 <= used and minutes[-1] <= used
    again = list(map(ended, start_workers(*changes)))
    assert [result.returncode for result in again] == [0, 0], again
    assert f"nothing to train: run/model.ckpt-{step}" in again[0].stdout


def test_workers_that_share_no_folder_are_refused(start_workers):
    processes = start_workers(own=(["--output_dir=alone"], ["--output_dir=another"]))
    for result in map(ended, processes):
        assert result.returncode == 1
        assert "must be one folder that all of them see" in result.stderr


@pytest.mark.parametrize(
    "others, told",
    (
        ("--seed=8", "--seed: another worker has another value (this one: "),
        ("--input_file=other/train.tfrecord", "--input_file: another worker sees other files"),
    ),
)
def test_workers_that_were_not_started_alike_are_refused(folder, start_workers, others, told):
    (folder / "other").mkdir()
    data = (folder / "train.tfrecord").read_bytes()
    (folder / "other" / "train.tfrecord").write_bytes(data + data)
    for result in map(ended, start_workers("--seed=7", own=([], [others]))):
        assert result.returncode == 1
        assert_one_line(result, told, "start the same command on all workers")
    assert not RunCheckpoints(str(folder / "run"), {}).steps()


def test_the_same_files_may_lie_in_another_folder(folder, start_workers):
    shutil.copytree(folder, folder.parent / "copy")
    paths = [f"--input_file={folder.parent / 'copy' / 'train.tfrecord'}"]
    results = list(map(ended, start_workers("--num_train_steps=3", own=([], paths))))
    assert [result.returncode for result in results] == [0, 0], results
