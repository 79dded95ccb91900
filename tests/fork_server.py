"""Starts programs in forks of a process that has imported TensorFlow but not used it.

This import is most of a program's start time. A request is a JSON line, (name, arguments). The
answer to "start" is a process id; the answer to "status" is the exit status of a process, or null
while it is running.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import signal
import sys
import threading

PACKAGES = ("data", "generation", "corpus", "training", "tasks.finetuning")
PACKAGES += ("tasks.seq2seq",)
DIES_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG


def import_all():
    importlib.import_module("nezha_tf.cli").import_tensorflow()
    importlib.import_module("tensorflow_text")
    for package in PACKAGES:
        folder = importlib.import_module(f"nezha_tf.{package}")
        for module in pkgutil.iter_modules(folder.__path__, folder.__name__ + "."):
            importlib.import_module(module.name)


def start(command, folder, outputs, environment, largest_file):
    child = os.fork()
    if child:
        return child
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    os.chdir(folder)
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY), stream)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv[:] = command
    sys.path[0] = os.path.dirname(command[0])
    status = 0
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    # What the end of a process does, but for freeing all imported objects, which takes long.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def status(child):
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def without_measuring():
    """Makes the rate of products, which takes 0.3 s to measure, a constant."""
    for name in ("throughput", "precision"):
        module = importlib.import_module(f"nezha_tf.training.{name}")
        module.product_rate = lambda kind, dtype: 1e12


if __name__ == "__main__":
    import_all()
    importlib.import_module("quick_tensorflow").make_quick()
    without_measuring()
    gc.freeze()  # so that a garbage collection in a fork does not copy all imported objects
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps({"start": start, "status": status}[name](*arguments)), flush=True)
