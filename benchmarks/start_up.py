"""Seconds from a training command to the end of its first step, by part; there is no peer.

The program runs as a user starts it, in a process of its own, with a clock at the borders of its
parts. Data and configurations of two sizes are made from the bundled sample.
"""

import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import time

import machine
import numpy as np
from absl import app, flags

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
RESOURCES = REPOSITORY / "nezha_tf" / "resources"
MARKS = "START_UP_MARKS"  # the file that the clock of a program writes
SIZES = {
    "tiny": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2},
    "small": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12},
}
FLAGS = flags.FLAGS
flags.DEFINE_list("sizes", "tiny,small", f"of {', '.join(SIZES)}")
flags.DEFINE_list("changes", [], "more flags of run_pretraining.py, such as --nojit_compile")
flags.DEFINE_integer("rounds", 5, "starts of each size")


def main(_):
    machine.require_bytecode()
    machine.show()
    with tempfile.TemporaryDirectory() as folder:
        _make_data(folder)
        started = {size: [] for size in FLAGS.sizes}
        for number in range(FLAGS.rounds):
            for size in FLAGS.sizes:
                started[size].append(_start(folder, size, number))
    for size, starts in started.items():
        _show(size, starts)


def _make_data(folder):
    command = [sys.executable, str(REPOSITORY / "tools" / "create_pretraining_data.py")]
    command += [f"--input_file={RESOURCES / 'sample_corpus.txt'}", "--output_file=train.tfrecord"]
    command += [f"--vocab_file={RESOURCES / 'vocab.txt'}", "--max_seq_length=128"]
    subprocess.run([*command, "--max_predictions_per_seq=20"], cwd=folder, check=True)
    vocab_size = len((RESOURCES / "vocab.txt").read_text("utf-8").splitlines())
    for name, size in SIZES.items():
        values = {**size, "vocab_size": vocab_size, "intermediate_size": 4 * size["hidden_size"]}
        values |= {"type_vocab_size": 2, "use_relative_position": True}
        pathlib.Path(folder, f"{name}.json").write_text(json.dumps(values))


def _start(folder, size, number):
    """Returns a list of (part, seconds of the clock, seconds of the processor)."""
    marks = os.path.join(folder, "marks.json")
    command = [sys.executable, __file__, f"--bert_config_file={size}.json", "--do_train"]
    command += ["--input_file=train.tfrecord", f"--output_dir={size}-{number}"]
    command += ["--max_seq_length=128", "--max_predictions_per_seq=20", "--train_batch_size=8"]
    command += ["--num_train_steps=2", "--num_warmup_steps=1", "--steps_per_loop=1"]
    environment = {**os.environ, MARKS: marks, "START_UP_AT": repr(time.time())}
    subprocess.run([*command, *FLAGS.changes], cwd=folder, env=environment, check=True)
    return json.loads(pathlib.Path(marks).read_text())


def _show(size, starts):
    names = [name for name, *_ in starts[0]]
    seconds = np.median([[values for _, *values in start] for start in starts], axis=0)
    print(f"\n| {size} | seconds | of the processor |\n| --- | --- | --- |")
    for name, values in [*zip(names, seconds, strict=True), ("together", seconds.sum(axis=0))]:
        print(f"| {name} | {' | '.join(f'{value:.2f}' for value in values)} |")


class _Clock:
    """Notes the seconds between two borders of parts."""

    def __init__(self):
        self.parts, self._last = [], (float(os.environ["START_UP_AT"]), 0.0)

    def note(self, part):
        now = (time.time(), time.process_time())
        self.parts.append((part, *(b - a for a, b in zip(self._last, now, strict=True))))
        self._last = now


def run_with_clock():
    """Runs run_pretraining.py with the flags of this process, and writes the parts' seconds."""
    clock = _Clock()
    sys.path.insert(0, str(REPOSITORY))
    sys.argv[0] = str(REPOSITORY / "run_pretraining.py")
    from nezha_tf import cli

    import_tensorflow = cli.import_tensorflow

    def imported():
        clock.note("Python, flags, files")
        import_tensorflow()
        clock.note("import of TensorFlow")
        _clock_the_step(clock)
        clock.note("import of nezha_tf")

    cli.import_tensorflow = imported
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        pathlib.Path(os.environ[MARKS]).write_text(json.dumps(clock.parts))


def _clock_the_step(clock):
    """Lets the training step note when it is traced and when its first run has ended."""
    from nezha_tf.tasks.pretraining import task  # noqa: F401
    from nezha_tf.training.run import Run
    from nezha_tf.training.step import TrainStep

    make, trace, run = Run.__init__, TrainStep.trace, TrainStep.run

    def made(self, *arguments):
        clock.note("reading files")
        make(self, *arguments)
        clock.note("making the model")

    def traced(self, iterator):
        clock.note("making optimizer and batches")
        trace(self, iterator)
        clock.note("tracing")

    def ran(self, iterator, count, stop=0.0):
        report = run(self, iterator, count, stop)
        if not is_over:
            float(report.gradient_norm)
            clock.note("compiling and the first step")
            is_over.append(True)
        return report

    is_over = []
    Run.__init__, TrainStep.trace, TrainStep.run = made, traced, ran


if __name__ == "__main__":
    run_with_clock() if MARKS in os.environ else app.run(main)
