"""A worker that dies, hangs or cannot be reached ends the others, and the run can go on."""

import os
import random
import signal
import time

import laws
import numpy as np
import pytest
import tensorflow as tf
from commands import assert_one_line
from loopback import Cable, addresses_of, held_ports, workers
from waiting import ended, wait_until

from nezha_tf.errors import STATUS_WORKER_LOST
from nezha_tf.model_folder.run_checkpoints import RunCheckpoints
from nezha_tf.training import lost_worker

# Dropout is on. A worker makes some twenty steps a second.
STEPS = 120
RUN = (f"--num_train_steps={STEPS}", "--learning_rate=1e-3", "--steps_per_loop=4")
RUN += ("--save_checkpoints_steps=20", "--log_steps=10", "--train_batch_size=4")
# What the others may take, in seconds: heartbeats are missed after 10.
MOST_SECONDS = 60


def tensors(folder, step):
    reader = tf.train.load_checkpoint(RunCheckpoints(str(folder / "run"), {}).path(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def steps(folder):
    return RunCheckpoints(str(folder / "run"), {}).steps()


def assert_ends_told(process, name):
    """Asserts that a worker ends soon, with one line that names the lost one."""
    began = time.monotonic()
    result = ended(process)
    assert time.monotonic() - began < MOST_SECONDS
    assert result.returncode == STATUS_WORKER_LOST, result
    assert_one_line(result, f"{name} (localhost:", "does not answer", "the run goes on")


def assert_whole(folder):
    """Asserts that the newest checkpoint can be read."""
    assert tensors(folder, max(steps(folder)))


@pytest.fixture(scope="module")
def undisturbed(prepared, tmp_path_factory):
    """The last checkpoint of a run of two workers without an interruption."""
    with held_ports(2) as ports, workers(prepared, addresses_of(ports), RUN) as processes:
        results = [ended(process) for process in processes]
    assert [result.returncode for result in results] == [0, 0], results
    return tensors(prepared, STEPS)


def assert_goes_on(folder, undisturbed):
    """Asserts that the same command ends with the weights of a run without an interruption."""
    with held_ports(2) as ports, workers(folder, addresses_of(ports), RUN) as processes:
        results = [ended(process) for process in processes]
    assert [result.returncode for result in results] == [0, 0], results
    assert "continuing from run/model.ckpt-" in results[0].stdout
    found = tensors(folder, STEPS)
    assert found.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        np.testing.assert_array_equal(found[name], value, name)
    assert not [name for name in os.listdir(folder / "run") if name.endswith((".tmp", ".log"))]


# The chief and another worker, killed and hanging.
WAYS = [(0, signal.SIGSTOP), (1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)]


@pytest.mark.long
@pytest.mark.parametrize("number", range(20 if laws.is_long() else 1))
def test_the_other_ends_and_the_run_goes_on(folder, undisturbed, number):
    """At any moment: while it computes, logs or saves."""
    generator = random.Random(None if laws.is_long() else number)
    victim, signal_number = WAYS[number % len(WAYS)]
    seconds = generator.uniform(0, 3)
    print(victim, signal_number, seconds)  # shown if the test fails
    with held_ports(2) as ports, workers(folder, addresses_of(ports), RUN) as processes:
        wait_until(lambda: steps(folder), processes[0])
        time.sleep(seconds)
        os.kill(processes[victim].pid, signal_number)
        assert_ends_told(processes[1 - victim], f"worker {victim}")
    assert_whole(folder)
    assert_goes_on(folder, undisturbed)


def test_a_connection_that_breaks(folder):
    with held_ports(2) as ports:
        cables = [Cable(port) for port in ports]
        told = [[f"localhost:{port}" for port in ports] for _ in ports]
        told[0][1] = f"localhost:{cables[1].port}"
        told[1][0] = f"localhost:{cables[0].port}"
        with workers(folder, told, RUN) as processes:
            wait_until(lambda: steps(folder), processes[0])
            for cable in cables:
                cable.cut()
            assert_ends_told(processes[0], "worker 1")
            assert_ends_told(processes[1], "worker 0")
    assert_whole(folder)


TWO = {("worker", 0): "a:1", ("worker", 1): "b:2"}
FOUR = {("chief", 0): "c:0", **TWO, ("worker", 2): "d:3"}


@pytest.mark.parametrize(
    "text, own, workers, name",
    [
        ("Error reported from /job:worker/task:1: unhealthy", 0, TWO, "worker 1 (b:2)"),
        ("from remote target /job:worker/replica:0/task:2 while", 0, FOUR, "worker 2 (d:3)"),
        ("/job:worker/task:0 says that /job:worker/task:1 died", 0, FOUR, "worker 1 (b:2)"),
        (
            "Deadline Exceeded RPC: /tensorflow.CoordinationService/Heartbeat",
            1,
            FOUR,
            "chief 0 (c:0)",
        ),
        ("Collective ops is aborted", 1, TWO, "worker 0 (a:1)"),
        ("Collective ops is aborted", 1, FOUR, "another worker"),
    ],
)
def test_the_worker_that_tensorflow_blames(text, own, workers, name):
    assert lost_worker._lost(text, ("worker", own), workers) == name
