"""How the tests call the programs: as a user does, in a process of its own."""

import json
import os
import subprocess
import sys

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

# Reads a program's flags as the program does, and prints their values.
READ_FLAGS = """
import json, runpy, sys
from absl import flags
program, *arguments = sys.argv[1:]
runpy.run_path(program, run_name="program")
flags.FLAGS([program, *arguments])
print(json.dumps(flags.FLAGS.flag_values_dict()))
"""

# Runs a program once with each list of arguments, each in a fork of a process that has imported
# tensorflow but not used it: most of what a start takes is that import.
RUN_EACH = """
import json, os, runpy, sys
program, cases = sys.argv[1], json.load(sys.stdin)
stdout, stderr, results = os.dup(1), os.dup(2), []
import nezha_tf.cli, tensorflow
for number, arguments in enumerate(cases):
    child = os.fork()
    if not child:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f".case-{number}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        sys.argv[:] = [program, *arguments]
        runpy.run_path(program, run_name="__main__")
        sys.exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for name in ("out", "err"):
        path = f".case-{number}.{name}"
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
        os.remove(path)
    results.append([status, *texts])
print(json.dumps(results))
"""


def flags_of(program, *arguments):
    """Returns the values that a program's flags have with these arguments, by name."""
    command = [sys.executable, "-c", READ_FLAGS, program, *arguments]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
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


def run(script, *arguments, folder, **options):
    return ended(start(script, *arguments, folder=folder, **options))


def run_each(script, cases, folder):
    """Runs a program with each of several lists of arguments; returns what `run` would of each."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_EACH, str(REPOSITORY / script)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stdout, stderr = process.communicate(json.dumps(cases))
    assert process.returncode == 0, stderr
    return [
        subprocess.CompletedProcess([script, *arguments], *result)
        for arguments, result in zip(cases, json.loads(stdout.splitlines()[-1]), strict=True)
    ]


def assert_each_one_line(script, standard, mistakes, folder):
    """Asserts that each of (arguments, parts of the message) is one line that has these parts."""
    cases = [[*standard, *arguments] for arguments, _ in mistakes]
    for result, (_, parts) in zip(run_each(script, cases, folder), mistakes, strict=True):
        assert_one_line(result, *parts)


def start_pretraining(folder, *changes, **options):
    return start("run_pretraining.py", *PRETRAINING, *changes, folder=folder, **options)


def run_pretraining(folder, *changes, **options):
    return ended(start_pretraining(folder, *changes, **options))


def create_data(folder, *changes):
    return run("tools/create_pretraining_data.py", *MAKING_DATA, *changes, folder=folder)


def assert_one_line(result, *parts):
    assert result.returncode != 0
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0], lines[0]
