"""How the tests call the programs: as a user does, in a process of its own."""

import functools
import json
import os
import subprocess
import sys
import tempfile

from conftest import REPOSITORY, RESOURCES

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

# Runs programs in forks of a process that has imported tensorflow but not used it: that import is
# most of what a start takes. Gets and returns a line of JSON for each.
FORK_SERVER = """
import importlib, json, os, pkgutil, runpy, sys
import nezha_tf.cli, keras, tensorflow, tensorflow_text
for package in "data generation pretraining_data training tasks.finetuning tasks.seq2seq".split():
    folder = importlib.import_module("nezha_tf." + package)
    for module in pkgutil.iter_modules(folder.__path__, folder.__name__ + "."):
        importlib.import_module(module.name)
for line in sys.stdin:
    program, arguments, folder, outputs = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream, path in enumerate(outputs, start=1):
            os.dup2(os.open(path, os.O_WRONLY), stream)
        sys.argv[:] = [program, *arguments]
        sys.path.insert(0, os.path.dirname(program))
        runpy.run_path(program, run_name="__main__")
        sys.exit(0)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
"""


@functools.cache
def fork_server():
    """The process that `run` asks; it ends with this one, whose end closes its input."""
    return subprocess.Popen(
        [sys.executable, "-c", FORK_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def flags_of(program, *arguments):
    """Returns the values that a program's flags have with these arguments, by name."""
    result = run("tests/read_flags.py", program, *arguments, folder=REPOSITORY)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def start(script, *arguments, folder, environment=None, **options):
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / script), *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(process):
    """Waits for a process; returns it with `stdout` and `stderr` as text."""
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def run_anew(script, *arguments, folder, **options):
    """Runs a program in a process of its own, tensorflow's start and all."""
    return ended(start(script, *arguments, folder=folder, **options))


def run(script, *arguments, folder):
    """Runs a program in a fork of a process that has imported tensorflow already."""
    server = fork_server()
    command = [str(REPOSITORY / script), *map(str, arguments)]
    with tempfile.NamedTemporaryFile("r") as stdout, tempfile.NamedTemporaryFile("r") as stderr:
        outputs = (stdout.name, stderr.name)
        print(json.dumps((command[0], command[1:], str(folder), outputs)), file=server.stdin)
        server.stdin.flush()
        status = json.loads(server.stdout.readline())
        return subprocess.CompletedProcess(command, status, stdout.read(), stderr.read())


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
