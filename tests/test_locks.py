"""The lock between runs, with processes that are started and killed."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
from waiting import TIME_LIMIT, ended, read_line

from nezha_tf.util import locks
from nezha_tf.util.errors import UserError

# Holds the lock of a file until its input ends, or prints why it cannot.
HOLDER = """
import sys
from nezha_tf.util import locks
from nezha_tf.util.errors import UserError
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


def test_what_is_no_lock_is_left_as_it_is(tmp_path, monkeypatch):
    """A link in a folder that was unpacked may lead to any file of the user's."""
    precious, path = tmp_path / "precious", tmp_path / "run.lock"
    precious.write_text("my work\n")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    listener = socket.socket(socket.AF_UNIX)
    for put, told in (
        (lambda: os.symlink(precious, path), "run.lock is a link, so it is no lock"),
        (lambda: os.symlink(tmp_path / "new", path), "run.lock is a link"),
        (lambda: os.symlink(tmp_path, path), "run.lock is a link"),
        (lambda: os.symlink("/dev/null", path), "run.lock is a link"),
        (lambda: os.link(precious, path), r"run.lock has a second name \(a hard link\)"),
        (lambda: path.write_text("my work\n"), "run.lock holds something else"),
        (lambda: path.write_text("process 7 on host\nmy work\n"), "run.lock holds something else"),
        (lambda: path.write_bytes(b"\xff" * 5000), "run.lock holds something else"),
        (lambda: os.mkfifo(path), "run.lock is no regular file"),
        (lambda: listener.bind(path.name), "run.lock is no regular file"),
        (lambda: path.mkdir(), "run.lock is no regular file"),
    ):
        put()
        before = _state(tmp_path)
        with pytest.raises(UserError, match=told), locks.held(str(path), "the folder"):
            raise AssertionError("it is not locked")
        assert _state(tmp_path) == before, told
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    listener.close()


def _state(folder):
    """Returns {name: (kind, what a link leads to or a file holds)}."""
    found = {}
    for path in pathlib.Path(folder).iterdir():
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        found[path.name] = mode, content
    return found


def test_a_lock_that_was_exchanged_meanwhile_is_left(tmp_path):
    path = tmp_path / "run.lock"
    with locks.held(str(path), "the folder"):
        path.unlink()
        path.write_text("my work")
    assert path.read_text() == "my work"
