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

# Reads a program's flags as the program does, and prints their values.
READ_FLAGS = """
import json, runpy, sys
from absl import flags
program, *arguments = sys.argv[1:]
runpy.run_path(program, run_name="program")
flags.FLAGS([program, *arguments])
print(json.dumps(flags.FLAGS.flag_values_dict()))
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


def start_pretraining(folder, *changes, **options):
    standard = ("--bert_config_file=config.json", "--input_file=train.tfrecord")
    standard += ("--output_dir=run", "--max_seq_length=32", "--max_predictions_per_seq=5")
    standard += ("--train_batch_size=4", "--num_warmup_steps=1", "--log_steps=1", "--do_train")
    standard += ("--nojit_compile",)  # which takes longer than these runs
    return start("run_pretraining.py", *standard, *changes, folder=folder, **options)


def run_pretraining(folder, *changes, **options):
    return ended(start_pretraining(folder, *changes, **options))


def create_data(folder, *changes):
    standard = (f"--input_file={RESOURCES / 'sample_corpus.txt'}", "--output_file=train.tfrecord")
    standard += (f"--vocab_file={RESOURCES / 'vocab.txt'}", "--max_seq_length=32")
    standard += ("--max_predictions_per_seq=5", "--dupe_factor=1")
    return run("tools/create_pretraining_data.py", *standard, *changes, folder=folder)


def assert_one_line(result, *parts):
    assert result.returncode != 0
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0], lines[0]
