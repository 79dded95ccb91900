"""Worker processes: answers, mistakes, deaths, and that none remains. Tasks are expressions."""

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys

import pytest
from waiting import ended, read_line, wait_until

from nezha_tf.corpus import pool as pool_module
from nezha_tf.corpus.pool import WorkerDied, WorkerPool
from nezha_tf.util.errors import UserError


def pool(count):
    return WorkerPool(count, pkgutil.resolve_name, "builtins:eval")


def process_ids():
    """Returns the ids of the workers that this process has started."""
    return [process.pid for process in multiprocessing.active_children()]


def alive(process_id):
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_every_task_is_done_once():
    with pool(2) as workers:
        tasks = [f"({n}, __import__('os').getpid())" for n in range(20)]
        found = dict(workers.run(tasks))
        assert [found[task][0] for task in tasks] == list(range(20))
        assert {worker for _, worker in found.values()} <= set(process_ids())
        # Larger than a pipe's buffer, in both directions.
        assert [len(result) for _, result in workers.run([repr("x" * 10**6)] * 3)] == [10**6] * 3
        assert "tensorflow" not in next(workers.run(["list(__import__('sys').modules)"]))[1]
        left = process_ids()
        assert len(left) == 2
    assert not any(map(alive, left))


def test_a_mistake_and_a_defect_are_told_apart():
    mistake = (
        "(_ for _ in ()).throw(__import__('nezha_tf.util.errors').util.errors.UserError('no room'))"
    )
    with pool(1) as workers, pytest.raises(UserError, match=r"^no room$"):
        list(workers.run(["1", mistake]))
    with pool(1) as workers, pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(workers.run(["1 / 0"]))
    # A worker that fails at its start reports this although its first task is not read.
    with WorkerPool(1, pkgutil.resolve_name, "builtins:none") as workers:
        with pytest.raises(RuntimeError, match="no attribute 'none'"):
            list(workers.run(["1" * 10**6]))


def test_a_worker_that_is_killed_is_noticed():
    done = []
    with pool(2) as workers, pytest.raises(WorkerDied) as raised:
        left = process_ids()
        for task, _ in workers.run(
            ["1", "2", "__import__('os').kill(__import__('os').getpid(), 9)"]
        ):
            done.append(task)
    assert raised.value.exit_code == -9 and "kill" in raised.value.task
    assert set(done) <= {"1", "2"} and not any(map(alive, left))


@pytest.mark.processes
def test_workers_leave_signals_to_the_one_who_started_them_and_end_with_it():
    program = (
        "import multiprocessing, pkgutil\n"
        "from nezha_tf.corpus.pool import WorkerPool\n"
        "if __name__ == '__main__':\n"
        "    with WorkerPool(2, pkgutil.resolve_name, 'builtins:eval') as workers:\n"
        "        list(workers.run(['1', '2']))\n"
        "        workers_now = multiprocessing.active_children()\n"
        "        print(*[worker.pid for worker in workers_now], flush=True)\n"
        "        list(workers.run(['__import__(\"time\").sleep(99)'] * 2))\n"
    )
    for ending in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        workers = list(map(int, read_line(process.stdout).split()))
        assert len(workers) == 2 and all(map(alive, workers))
        if ending == signal.SIGINT:
            for worker in workers:
                os.kill(worker, signal.SIGTERM)
            os.killpg(process.pid, ending)
        else:
            process.kill()
        stderr = ended(process).stderr
        # One traceback, of the process that was interrupted; workers print nothing.
        assert stderr.count("Traceback") == (ending == signal.SIGINT), stderr
        wait_until(lambda: not any(map(alive, workers)))  # noqa: B023


def test_too_little_memory_in_a_worker_is_no_defect(monkeypatch):
    """Nor are too many open files: what runs the pool tells both in a line."""
    monkeypatch.setattr(pool_module, "_end_with_parent", lambda: None)
    for error in (MemoryError(), OSError(24, "Too many open files")):

        def make(error=error):
            raise error

        ours, theirs = multiprocessing.Pipe()
        pool_module._work(theirs, make, ())
        with pytest.raises(type(error)):
            pool_module._Worker(None, ours).result()
