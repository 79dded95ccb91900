"""A worker that dies, hangs or cannot be reached ends the others, and the run can go on."""

import contextlib
import functools
import os
import random
import shutil
import signal
import time

import laws
import numpy as np
import pytest
import tensorflow as tf
from commands import assert_one_line
from loopback import Cable, addresses_of, held_ports, workers
from waiting import ended, wait_until

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.training import workers as lost_worker
from nezha_tf.util.errors import STATUS_WORKER_LOST

pytestmark = pytest.mark.processes

# Dropout is on. A worker makes twenty to forty steps a second.
STEPS, STEPS_BETWEEN = 80, 20
RUN = (f"--num_train_steps={STEPS}", "--learning_rate=1e-3", "--steps_per_loop=4")
RUN += (f"--save_checkpoints_steps={STEPS_BETWEEN}", "--log_steps=10")
# What the others may take, in seconds: heartbeats are missed after 10.
MOST_SECONDS = 60


def tensors(folder, step):
    reader = tf.train.load_checkpoint(RunCheckpoints(str(folder / "run"), {}).path(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def steps(folder):
    return RunCheckpoints(str(folder / "run"), {}).steps()


@contextlib.contextmanager
def running(folder, count):
    """Starts so many workers, each with two examples of a batch, as `loopback.workers` does."""
    batch = f"--train_batch_size={2 * count}"
    with held_ports(count) as ports:
        with workers(folder, addresses_of(ports), (*RUN, batch)) as processes:
            yield processes


def ended_all(folder, count):
    """Returns what is at the end of so many workers that nobody disturbs."""
    with running(folder, count) as processes:
        results = [ended(process) for process in processes]
    assert [result.returncode for result in results] == [0] * count, results
    return results


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
    """Returns a function of a number of workers: the last checkpoint of a run without a loss."""

    @functools.cache
    def tensors_of(count):
        folder = shutil.copytree(prepared, tmp_path_factory.mktemp("undisturbed") / "folder")
        ended_all(folder, count)
        return tensors(folder, STEPS)

    return tensors_of


def assert_goes_on(folder, count, undisturbed):
    """Asserts that the same command ends with the weights of a run without an interruption."""
    results = ended_all(folder, count)
    assert "continuing from run/model.ckpt-" in results[0].stdout
    found = tensors(folder, STEPS)
    assert found.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        np.testing.assert_array_equal(found[name], value, name)
    assert not [name for name in os.listdir(folder / "run") if name.endswith((".tmp", ".log"))]


# The chief and another worker, killed and hanging.
WAYS = [(0, signal.SIGSTOP), (1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)]


@pytest.mark.long
@pytest.mark.parametrize("number", range(20) if laws.is_long() else [2])
def test_the_other_ends_and_the_run_goes_on(folder, undisturbed, number):
    """At any moment: while it computes, logs or saves."""
    generator = random.Random(None if laws.is_long() else number)
    victim, signal_number = WAYS[number % len(WAYS)]
    count = 2 + number // len(WAYS) % 2
    # A second before the end at the latest, or there would be nothing to lose.
    step = generator.randrange(STEPS_BETWEEN, STEPS - STEPS_BETWEEN, STEPS_BETWEEN)
    seconds = generator.uniform(0, 0.5)
    print(count, victim, signal_number, step, seconds)  # shown if the test fails
    with running(folder, count) as processes:
        wait_until(lambda: max(steps(folder), default=0) >= step, processes[0])
        time.sleep(seconds)
        os.kill(processes[victim].pid, signal_number)
        for process in processes[:victim] + processes[victim + 1 :]:
            assert_ends_told(process, f"worker {victim}")
    assert_whole(folder)
    assert_goes_on(folder, count, undisturbed(count))


def test_a_connection_that_breaks(folder):
    with held_ports(2) as ports:
        cables = [Cable(port) for port in ports]
        told = [[f"localhost:{port}" for port in ports] for _ in ports]
        told[0][1] = f"localhost:{cables[1].port}"
        told[1][0] = f"localhost:{cables[0].port}"
        with workers(folder, told, (*RUN, "--train_batch_size=4")) as processes:
            wait_until(lambda: steps(folder), processes[0])
            for cable in cables:
                cable.cut()
            assert_ends_told(processes[0], "worker 1")
            assert_ends_told(processes[1], "worker 0")
    assert_whole(folder)


# What a worker of three was told, shortened, after the chief had stopped (NO_HEARTBEAT); with
# UNHEALTHY the text is put together here.
PASSED_ON = """Collective ops is aborted by: Collective ops is aborted by: {cause}
Additional GRPC error information from remote target /job:worker/replica:0/task:{by} while calling \
/tensorflow.WorkerService/RecvBuf:
:UNKNOWN:Error received from peer  {{grpc_status:4, grpc_message:"Collective ops is aborted by: \
{cause}"}}
"""
NO_HEARTBEAT = "Deadline Exceeded\\n\\nRPC: /tensorflow.CoordinationService/Heartbeat"
UNHEALTHY = "Error reported from /job:worker/task:1: unhealthy"
TWO = {("worker", 0): "a:1", ("worker", 1): "b:2"}
THREE = {**TWO, ("worker", 2): "c:3"}
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
        (PASSED_ON.format(cause=NO_HEARTBEAT, by=1), 2, THREE, "worker 0 (a:1)"),
        (PASSED_ON.format(cause=UNHEALTHY, by=0), 2, THREE, "worker 1 (b:2)"),
        ("Collective ops is aborted", 1, TWO, "worker 0 (a:1)"),
        ("Collective ops is aborted", 1, FOUR, "another worker"),
    ],
)
def test_the_worker_that_tensorflow_blames(text, own, workers, name):
    assert lost_worker._lost(text, ("worker", own), workers) == name
