"""The lock between runs, with processes that are started and killed."""

import signal
import subprocess
import sys

import pytest
from waiting import TIME_LIMIT, ended, read_line

from nezha_tf import locks
from nezha_tf.errors import UserError

# Holds the lock of a file until its input ends, or prints why it cannot.
HOLDER = """
import sys
from nezha_tf import locks
from nezha_tf.errors import UserError
try:
    with locks.held(sys.argv[1], "the folder"):
        print("held", flush=True)
        sys.stdin.read()
except UserError as error:
    print(error, flush=True)
"""


@pytest.fixture
def start():
    """Returns a function from a path to (a process that tries to lock it, its message)."""
    processes = []

    def start(path):
        command = [sys.executable, "-c", HOLDER, str(path)]
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return processes[-1], read_line(processes[-1].stdout).strip()

    yield start
    for process in processes:
        process.kill()
        ended(process)


def test_one_process_holds_it_and_the_other_is_told_who(tmp_path, start):
    path = tmp_path / "run.lock"
    holder, said = start(path)
    assert said == "held"
    message = rf"^another run \(process {holder.pid} on \S+\) is writing the folder; wait"
    with pytest.raises(UserError, match=message), locks.held(str(path), "the folder"):
        pass
    assert f"process {holder.pid} on" in start(path)[1]
    ended(holder, "")
    assert not path.exists()
    assert start(path)[1] == "held"


def test_a_killed_process_leaves_no_lock(tmp_path, start):
    path = tmp_path / "run.lock"
    for _ in range(3):
        holder, said = start(path)
        assert said == "held"
        holder.send_signal(signal.SIGKILL)
        holder.wait(TIME_LIMIT)
        assert path.exists()
    with locks.held(str(path), "the folder"):
        assert start(path)[1].startswith("another run")
    assert not path.exists()


def test_a_folder_that_was_made_for_it_goes_with_it(tmp_path):
    with locks.held(str(tmp_path / "new" / "run.lock"), "the folder"):
        assert (tmp_path / "new" / "run.lock").exists()
    assert not (tmp_path / "new").exists()
    with locks.held(str(tmp_path / "new" / "run.lock"), "the folder"):
        (tmp_path / "new" / "model").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model"]
    with pytest.raises(RuntimeError), locks.held(str(tmp_path / "run.lock"), "the folder"):
        raise RuntimeError
    assert not (tmp_path / "run.lock").exists()


def test_without_locks_nobody_is_kept_out(tmp_path, monkeypatch):
    def lockf(file, how):
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "lockf", lockf)
    path = str(tmp_path / "run.lock")
    with locks.held(path, "the folder"), locks.held(path, "the folder"):
        pass
