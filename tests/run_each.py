"""Runs a program for several lists of arguments, one after another in this process.

`python tests/run_each.py PROGRAM LISTS`, with the lists as JSON, prints (status, stdout, stderr) of
each run as JSON. TensorFlow starts only once, and each run sees the state of the runs before.
"""

import contextlib
import json
import os
import runpy
import sys
import tempfile
import traceback

import program_flags


def run(program, arguments):
    """Runs a program as if it were alone in the process; returns (status, stdout, stderr)."""
    outputs = [tempfile.TemporaryFile("w+") for _ in range(2)]
    kept = [os.dup(stream) for stream in (1, 2)]
    for stream, output in enumerate(outputs, start=1):
        os.dup2(output.fileno(), stream)
    status = 0
    before = sys.argv[:]
    sys.argv[:] = [program, *arguments]
    with (
        open(1, "w", closefd=False) as out,
        open(2, "w", closefd=False) as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            with program_flags.forgotten_afterwards():
                runpy.run_path(program, run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
    sys.argv[:] = before
    for stream, old in zip((1, 2), kept, strict=True):
        os.dup2(old, stream)
        os.close(old)
    return status, *map(text_of, outputs)


def text_of(file):
    with file:
        file.seek(0)
        return file.read()


if __name__ == "__main__":
    program, lists = sys.argv[1:]
    print(json.dumps([run(program, arguments) for arguments in json.loads(lists)]))
