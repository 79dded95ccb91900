"""The record of a run: a progress bar, TensorBoard, and a line of JSON for each interval."""

import json
import os
import time

import tensorflow as tf

from nezha_tf import console
from nezha_tf.files import write_text

METRICS_FILE = "metrics.jsonl"

# What tf.summary.scalar attaches; that function itself wants TensorBoard, which is needed to
# look at the summaries but not to write them.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data={"plugin_name": "scalars"}, data_class="DATA_CLASS_SCALAR"
)


class Averages:
    """Sums `Ratio`s over batches, to divide them once at the end."""

    def __init__(self):
        self._sums = {}

    def add(self, ratios):
        """Adds a dict of name to `Ratio`."""
        for name, ratio in ratios.items():
            total, weight, _ = self._sums.get(name, (0.0, 0.0, 0.0))
            epsilon = float(ratio.epsilon)
            self._sums[name] = (total + float(ratio.sum), weight + float(ratio.weight), epsilon)

    def means(self):
        """Returns dict of name to float; a mean over nothing is 0."""
        return {
            name: total / (weight + epsilon) if weight + epsilon else 0.0
            for name, (total, weight, epsilon) in self._sums.items()
        }


class Throughput:
    """Examples and tokens a second since it was made; pauses do not count."""

    def __init__(self):
        self._examples = self._tokens = 0
        self._started = time.monotonic()

    def add(self, examples, tokens):
        """Counts one step."""
        self._examples += examples
        self._tokens += int(tokens)

    def leave_out(self, seconds):
        """Leaves out the time of a pause (a save or an evaluation)."""
        self._started += seconds

    def rates(self):
        """Returns the two rates."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        return {
            "examples_per_second": self._examples / seconds,
            "tokens_per_second": self._tokens / seconds,
        }


class RunRecord:
    """Writes what a run reports, to the screen and to files in its folder."""

    def __init__(self, folder, first_step, last_step):
        """Args:
        folder: of the run; entries of steps past `first_step` are dropped from its files.
        first_step: the step that the run goes on from.
        last_step: the step that it ends at.
        """
        self._path = os.path.join(folder, METRICS_FILE)
        _drop_later_entries(self._path, first_step)
        self._writer = tf.summary.create_file_writer(os.path.join(folder, "summaries"))
        self._bar = console.progress(
            total=last_step, initial=first_step, desc="training", unit="step"
        )

    def advance(self):
        """Counts one step on the progress bar."""
        self._bar.update()

    def write(self, step, values):
        """Records values (dict of name to float) at a step."""
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)
        self._writer.flush()

    def show(self, values):
        """Shows values beside the progress bar."""
        self._bar.set_postfix_str(" ".join(f"{name} {value}" for name, value in values.items()))

    def say(self, line):
        """Prints a line without tearing the progress bar."""
        self._bar.write(line)

    def close(self):
        """Ends the progress bar and the summaries."""
        self._bar.close()
        self._writer.close()


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl` (list of dict), rising by step."""
    path = os.path.join(folder, METRICS_FILE)
    if not os.path.exists(path):
        return []
    entries = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                entries.append(json.loads(line))
            except ValueError:  # the last line of a run that was killed while it wrote
                break
    return entries


def _drop_later_entries(path, step):
    """Drops what a killed run recorded past the checkpoint that this one goes on from."""
    kept = [entry for entry in read_metrics(os.path.dirname(path)) if entry["step"] <= step]
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in kept))
