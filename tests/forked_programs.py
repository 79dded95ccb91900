"""Lets `subprocess.run` start the repository's programs in forks, which need not import TensorFlow.

For Python text that runs in a fork of fork_server.py itself. After that process has used
TensorFlow, whose threads no fork has, programs are started anew.
"""

import os
import subprocess
import sys
import tempfile

import fork_server

_run_anew = subprocess.run


def install():
    """Replaces `subprocess.run`."""
    subprocess.run = _run


def _run(command, **options):
    from tensorflow.python.eager import context

    if command[0] != sys.executable or context.context()._initialized:
        return _run_anew(command, **options)
    outputs = [tempfile.NamedTemporaryFile("r") for _ in range(2)]
    names = [output.name for output in outputs]
    child = fork_server.start(list(command[1:]), os.getcwd(), names, {}, None)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return subprocess.CompletedProcess(command, status, *(output.read() for output in outputs))
