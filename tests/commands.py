"""Runs the programs as a user does, here or each in its own process."""

import contextlib
import functools
import json
import os
import pathlib
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback

import program_flags
from absl import flags
from conftest import REPOSITORY, RESOURCES
from waiting import TIME_LIMIT, ended, read_line

from nezha_tf import cli
from nezha_tf.programs import table
from nezha_tf.util import settings

CONFIG = {
    "vocab_size": 9200,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
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
    "--nojit_compile",  # compiling takes longer than these runs
)
MAKING_DATA = (
    f"--input_file={RESOURCES / 'sample_corpus.txt'}",
    "--output_file=train.tfrecord",
    f"--vocab_file={RESOURCES / 'vocab.txt'}",
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--dupe_factor=1",
)

# The same configuration, but it learns within a few steps.
QUICK_CONFIG = {
    **CONFIG,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}


@functools.cache
def fork_server():
    """The process that forks; it ends when this process ends, which closes its input."""
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "tests" / "fork_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def ask_fork_server(name, *arguments):
    server = fork_server()
    print(json.dumps((name, arguments)), file=server.stdin, flush=True)
    answer = read_line(server.stdout)
    assert answer, f"the fork server is gone: {server.poll()}"
    return json.loads(answer)


class ForkedProgram:
    """A program in a fork of the server, with the parts of `subprocess.Popen` that tests use."""

    def __init__(self, command, folder, environment, largest_file):
        self.args = command
        self.returncode = None
        self._outputs = [tempfile.NamedTemporaryFile("r") for _ in range(2)]
        outputs = [output.name for output in self._outputs]
        self.pid = ask_fork_server("start", command, folder, outputs, environment, largest_file)

    def poll(self):
        if self.returncode is None:
            self.returncode = ask_fork_server("status", self.pid)
        return self.returncode

    def wait(self, timeout=TIME_LIMIT):
        if self.poll() is None:
            end = os.pidfd_open(self.pid)
            try:
                if not select.select([end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(end)
        return self.poll()

    def communicate(self, sent=None, timeout=TIME_LIMIT):
        self.wait(timeout)
        return [output.read() for output in self._outputs]

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


@functools.cache
def _flags_of(program, arguments):
    with program_flags.forgotten_afterwards(), contextlib.chdir(REPOSITORY):
        settings.define(settings_class_of(program))
        cli.parse([program, *arguments])
        return json.dumps(flags.FLAGS.flag_values_dict())


def settings_class_of(program):
    """Returns the dataclass of the flags of a program, by its path in the repository."""
    return table.part(table.PROGRAMS[pathlib.Path(program).stem].settings)


def settings_of(settings_class, *arguments):
    """Returns the settings of a command line, which may contain "--flagfile=..."."""
    flag_values = flags.FlagValues()
    settings.define(settings_class, flag_values)
    cli.parse(["program", *arguments], flag_values)
    return settings.from_flags(settings_class, flag_values)


def flags_of(program, *arguments):
    """Returns the values of a program's flags for these arguments, by name."""
    return json.loads(_flags_of(program, arguments))


def start(script, *arguments, folder, environment=None, largest_file=None):
    """Starts a program in a fork of a process that has already imported TensorFlow.

    Args:
      script: path within the repository.
      arguments: the program's arguments.
      folder: the folder in which it runs.
      environment: dict of environment variables to set for it.
      largest_file: size in bytes beyond which it cannot write a file, as on a full disk.
    """
    command = [str(REPOSITORY / script), *map(str, arguments)]
    return ForkedProgram(command, str(folder), environment or {}, largest_file)


def run(script, *arguments, folder):
    """Runs a program in this process, whose TensorFlow has started, as if it were alone there."""
    command = [str(REPOSITORY / script), *map(str, arguments)]
    files = [tempfile.TemporaryFile("w+") for _ in range(2)]
    kept, before, status = [os.dup(stream) for stream in (1, 2)], sys.argv[:], 0
    for stream, file in enumerate(files, start=1):
        os.dup2(file.fileno(), stream)
    sys.argv[:] = command
    with (
        contextlib.chdir(folder),
        open(1, "w", closefd=False) as out,
        open(2, "w", closefd=False) as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            with program_flags.forgotten_afterwards():
                runpy.run_path(command[0], run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
    sys.argv[:] = before
    for stream, old in zip((1, 2), kept, strict=True):
        os.dup2(old, stream)
        os.close(old)
    return subprocess.CompletedProcess(command, status, *map(_text_of, files))


def _text_of(file):
    with file:
        file.seek(0)
        return file.read()


def start_anew(script, *arguments, folder, environment=None, **options):
    """Starts a program in a new process, which must import TensorFlow itself."""
    if environment:
        options["env"] = {**os.environ, **environment}
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / script), *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run_anew(script, *arguments, folder, **options):
    """Starts a program with `start_anew`, and waits for its end."""
    return ended(start_anew(script, *arguments, folder=folder, **options))


def assert_each_one_line(script, standard, mistakes, folder):
    """Asserts that each of (arguments, parts of the message) gives one line with these parts."""
    for arguments, parts in mistakes:
        assert_one_line(run(script, *standard, *arguments, folder=folder), *parts)


def start_pretraining(folder, *changes, **options):
    return start("run_pretraining.py", *PRETRAINING, *changes, folder=folder, **options)


def run_pretraining(folder, *changes):
    return run("run_pretraining.py", *PRETRAINING, *changes, folder=folder)


def create_data(folder, *changes):
    return run("tools/create_pretraining_data.py", *MAKING_DATA, *changes, folder=folder)


def assert_one_line(result, *parts):
    assert result.returncode > 0, result  # a signal did not end it
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0], lines[0]
