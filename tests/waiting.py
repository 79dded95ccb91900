"""Waiting with a time limit, after which the test fails."""

import contextlib
import select
import subprocess
import time

# Much longer than any wait on a busy machine, and shorter than pytest's limit for a test.
TIME_LIMIT = 200


def wait_until(condition, process=None, seconds_between=0.02):
    """Waits until a condition holds; fails if that takes too long.

    Args:
      condition: function without arguments.
      process: None, or the process that should make the condition true; if it ends before, the
        test fails.
      seconds_between: time between two checks of the condition.
    """
    end = time.monotonic() + TIME_LIMIT
    while not condition():
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"it ended too early: {ended(process)}")
        assert time.monotonic() < end, f"waited for {TIME_LIMIT} s in vain"
        time.sleep(seconds_between)


def read_line(stream):
    """Returns the next line of a process's output, without reading more."""
    assert select.select([stream], [], [], TIME_LIMIT)[0], f"no line within {TIME_LIMIT} s"
    return stream.readline()


def ended(process, sent=None):
    """Waits for a process to end; kills it and fails if that takes too long.

    Args:
      process: `subprocess.Popen`, or an object with its `communicate`.
      sent: text for its input.

    Returns:
      `subprocess.CompletedProcess` with `stdout` and `stderr` as text.
    """
    try:
        outputs = process.communicate(sent, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as error:
        process.kill()
        outputs = "what it has started still runs"
        with contextlib.suppress(subprocess.TimeoutExpired):
            outputs = process.communicate(timeout=10)
        message = f"still running after {TIME_LIMIT} s: {process.args}\n{outputs}"
        raise AssertionError(message) from error
    return subprocess.CompletedProcess(process.args, process.returncode, *outputs)
