"""How the tests call the programs: as a user does, each in a process."""

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile

from absl import flags
from conftest import REPOSITORY, RESOURCES

from nezha_tf import settings

CONFIG = {
    "vocab_size": 9200,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "type_vocab_size": 2,
    "use_relative_position": True,
}

PRETRAINING = (
    "--bert_config_file=config.json",
    "--input_file=train.tfrecord",
    "--output_dir=run",
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--train_batch_size=4",
    "--num_warmup_steps=1",
    "--log_steps=1",
    "--do_train",
    "--nojit_compile",  # which takes longer than these runs
)
MAKING_DATA = (
    f"--input_file={RESOURCES / 'sample_corpus.txt'}",
    "--output_file=train.tfrecord",
    f"--vocab_file={RESOURCES / 'vocab.txt'}",
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--dupe_factor=1",
)

# The same, learnt in a few steps.
QUICK_CONFIG = {
    **CONFIG,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}

# Starts programs in forks of a process that has imported tensorflow but not used it: that import is
# most of what a start takes. Gets a line of JSON, what is to be done and with what: "start", which
# is answered with a process id, or "wait", with an exit status or null.
FORK_SERVER = """
import gc, importlib, json, os, pkgutil, resource, runpy, sys
import nezha_tf.cli, keras, tensorflow, tensorflow_text
for package in "data generation pretraining_data training tasks.finetuning tasks.seq2seq".split():
    folder = importlib.import_module("nezha_tf." + package)
    for module in pkgutil.iter_modules(folder.__path__, folder.__name__ + "."):
        importlib.import_module(module.name)

def start(command, folder, outputs, environment, largest_file):
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY), stream)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv[:] = command
    sys.path.insert(0, os.path.dirname(command[0]))
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            # Taking all that is imported apart is far more work than most refusals are.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
    sys.exit(0)

def wait(child, until_it_ends):
    ended, status = os.waitpid(child, 0 if until_it_ends else os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None

gc.freeze()  # so that a collection in a fork does not copy all that was imported
for line in sys.stdin:
    name, arguments = json.loads(line)
    print(json.dumps({"start": start, "wait": wait}[name](*arguments)), flush=True)
"""


@functools.cache
def fork_server():
    """The process that forks; it ends with this one, whose end closes its input."""
    return subprocess.Popen(
        [sys.executable, "-c", FORK_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Optimizing its code takes XLA longer than running it does here.
        env={**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0"},
    )


def ask_fork_server(name, *arguments):
    server = fork_server()
    print(json.dumps((name, arguments)), file=server.stdin, flush=True)
    return json.loads(server.stdout.readline())


class ForkedProgram:
    """A program in a fork of the server, with what the tests use of a `subprocess.Popen`."""

    def __init__(self, command, folder, environment, largest_file):
        self.args = command
        self.returncode = None
        self._outputs = [tempfile.NamedTemporaryFile("r") for _ in range(2)]
        outputs = [output.name for output in self._outputs]
        self.pid = ask_fork_server("start", command, folder, outputs, environment, largest_file)

    def poll(self):
        return self._status(until_it_ends=False)

    def wait(self):
        return self._status(until_it_ends=True)

    def communicate(self):
        self.wait()
        return [output.read() for output in self._outputs]

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def _status(self, until_it_ends):
        if self.returncode is None:
            self.returncode = ask_fork_server("wait", self.pid, until_it_ends)
        return self.returncode


def settings_of(settings_class, *arguments):
    """Returns the settings of a command line; "--flagfile=..." may be among the arguments."""
    flag_values = flags.FlagValues()
    settings.define(settings_class, flag_values)
    flag_values(["program", *arguments])
    return settings.from_flags(settings_class, flag_values)


def flags_of(program, *arguments):
    """Returns the values that a program's flags have with these arguments, by name."""
    result = run("tests/read_flags.py", program, *arguments, folder=REPOSITORY)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def start(script, *arguments, folder, environment=None, largest_file=None):
    """Starts a program in a fork of a process that has imported tensorflow already.

    Args:
      script: path within the repository.
      arguments: of the program.
      folder: in which it runs.
      environment: dict of variables that are set for it.
      largest_file: bytes past which it can write no file, as on a full disk.
    """
    command = [str(REPOSITORY / script), *map(str, arguments)]
    return ForkedProgram(command, str(folder), environment or {}, largest_file)


def ended(process):
    """Waits for a process; returns it with `stdout` and `stderr` as text."""
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def run(script, *arguments, folder):
    """Runs a program as `start` does."""
    return ended(start(script, *arguments, folder=folder))


def start_anew(script, *arguments, folder, **options):
    """Starts a program in a process of its own, tensorflow's start and all."""
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / script), *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run_anew(script, *arguments, folder, **options):
    """Runs a program as `start_anew` does."""
    return ended(start_anew(script, *arguments, folder=folder, **options))


def assert_each_one_line(script, standard, mistakes, folder):
    """Asserts that each of (arguments, parts of the message) is one line that has these parts."""
    for arguments, parts in mistakes:
        assert_one_line(run(script, *standard, *arguments, folder=folder), *parts)


def start_pretraining(folder, *changes, **options):
    return start("run_pretraining.py", *PRETRAINING, *changes, folder=folder, **options)


def run_pretraining(folder, *changes):
    return run("run_pretraining.py", *PRETRAINING, *changes, folder=folder)


def create_data(folder, *changes):
    return run("tools/create_pretraining_data.py", *MAKING_DATA, *changes, folder=folder)


def assert_one_line(result, *parts):
    assert result.returncode != 0
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0], lines[0]
