"""The log of a run: lines on the screen, metrics in files, TensorBoard, throughput."""

import json
import os
import time

import tensorflow as tf

from nezha_tf.checkpoints.run_folder import METRICS_FILE, read_metrics
from nezha_tf.objectives.losses import WeightedMean
from nezha_tf.util import console, storage
from nezha_tf.util.files import write_text

# The metadata of tf.summary.scalar. That function requires TensorBoard, which is needed to view
# summaries but not to write them.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data={"plugin_name": "scalars"}, data_class="DATA_CLASS_SCALAR"
)


class Averages:
    """Sums `WeightedMean`s over batches and divides once at the end."""

    def __init__(self):
        self._sums = {}

    def add(self, ratios):
        """Adds a dict of name to `WeightedMean`."""
        for name, ratio in ratios.items():
            ratio = WeightedMean(*map(float, ratio))
            self._sums[name] = self._sums[name].plus(ratio) if name in self._sums else ratio

    def means(self):
        """Returns a dict of name to float; a mean with weight 0 is 0."""
        weights = {name: ratio.weight + ratio.epsilon for name, ratio in self._sums.items()}
        return {n: self._sums[n].sum / weight if weight else 0.0 for n, weight in weights.items()}

    def results(self):
        """Returns `means` with `loss`, the sum of those named `..._loss`, each times its scale.

        Without any of them there is no `loss`.
        """
        means = self.means()
        losses = [self._sums[n].scale * means[n] for n in means if n.endswith("_loss")]
        return {**means, **({"loss": sum(losses)} if losses else {})}


class Throughput:
    """Measures rates since its creation or the last restart, without pauses."""

    def __init__(self, examples_per_step, flops_per_example, peak_flops=None, is_measured=False):
        """Args:
        examples_per_step: examples in a global batch.
        flops_per_example: the result of `flops.training_flops`.
        peak_flops: peak FLOP/s of all devices together, or None.
        is_measured: whether that is a measurement. A run that is faster shows it to be wrong.
        """
        self._examples_per_step = examples_per_step
        self._flops_per_example = flops_per_example
        self._peak_flops = peak_flops
        self._is_measured = is_measured
        self._steps = self._tokens = 0
        self._started = time.monotonic()

    def add(self, steps, tokens):
        """Counts steps, with skipped ones, and their tokens."""
        self._steps += steps
        self._tokens += tokens

    def leave_out(self, seconds):
        """Excludes the time of a pause (a save or an evaluation)."""
        self._started += seconds

    def restart(self):
        """Starts the measurement again."""
        self._steps = self._tokens = 0
        self._started = time.monotonic()

    def rates(self):
        """Returns a dict of rates per second; with `peak_flops` also the utilization (0 to 1).

        From a utilization above 1 of a measured peak on, none is told: the measurement was wrong.
        """
        seconds = max(time.monotonic() - self._started, 1e-9)
        examples = self._steps * self._examples_per_step / seconds
        flops = examples * self._flops_per_example
        rates = {
            "examples_per_second": examples,
            "tokens_per_second": self._tokens / seconds,
            "model_tflops_per_second": flops / 1e12,
        }
        if self._is_measured and flops > (self._peak_flops or 0):
            self._peak_flops = None
        if self._peak_flops:
            rates["model_flop_utilisation"] = flops / self._peak_flops
        return rates


class SilentRecord:
    """The log of workers that are not the chief; it writes nothing."""

    def advance(self, steps):
        pass

    def write(self, step, values):
        pass

    def show(self, values):
        pass

    def say(self, line):
        pass

    def close(self):
        pass


class RunRecord:
    """Writes the log of a run to the screen and to files in its folder."""

    def __init__(self, folder, first_step, last_step):
        """Args:
        folder: the run's folder; entries of steps after `first_step` are removed from its files.
        first_step: the step from which the run continues.
        last_step: the step at which it ends.
        """
        self._path = os.path.join(folder, METRICS_FILE)
        _drop_later_entries(self._path, first_step)
        self._writer = tf.summary.create_file_writer(os.path.join(folder, "summaries"))
        self._bar = console.progress(
            total=last_step, initial=first_step, desc="training", unit="step"
        )

    def advance(self, steps):
        """Counts steps on the progress bar."""
        self._bar.update(steps)

    def write(self, step, values):
        """Logs values (dict of name to float) at a step."""
        with storage.open_binary(self._path, "ab") as file:
            file.write((json.dumps({"step": step, **values}) + "\n").encode())
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=_SCALAR)
        self._writer.flush()

    def show(self, values):
        """Shows values beside the progress bar."""
        self._bar.set_postfix_str(" ".join(f"{name} {value}" for name, value in values.items()))

    def say(self, line):
        """Prints a line without breaking the progress bar."""
        self._bar.write(line)

    def close(self):
        """Closes the progress bar and the summaries."""
        self._bar.close()
        self._writer.close()


def _drop_later_entries(path, step):
    """Removes the entries of a killed run after the checkpoint from which this run continues."""
    kept = [entry for entry in read_metrics(os.path.dirname(path)) if entry["step"] <= step]
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in kept))


class Journal:
    """Writes the entries of a run's log."""

    def __init__(self, record, monitor, throughput, watch):
        """Args:
        record: `RunRecord`, or `SilentRecord`.
        monitor: `Monitor`.
        throughput: `Throughput`.
        watch: `DivergenceWatch`.
        """
        self._record = record
        self._monitor = monitor
        self._throughput = throughput
        self._watch = watch

    def restart(self):
        """Starts the measurement of rates."""
        self._throughput.restart()

    def advance(self, made, count, tokens):
        """Counts updates (`made`), computed steps with skipped ones (`count`), and tokens."""
        self._record.advance(made)
        self._throughput.add(count, tokens)

    def leave_out(self, seconds):
        """Excludes the time of a pause from the rates."""
        self._throughput.leave_out(seconds)

    def say(self, line):
        """Prints a line."""
        self._record.say(line)

    def log(self, step, averages, report):
        """Writes an entry.

        Args:
          step: updates made so far.
          averages: `Averages` since the previous entry.
          report: the last `StepReport`.

        Returns:
          The entry, dict of name to float.

        Raises:
          UserError: the loss has diverged.
        """
        entry = averages.results()
        entry["learning_rate"] = float(report.learning_rate)
        entry["gradient_norm"] = float(report.gradient_norm)
        entry.update(self._monitor.values(report))
        entry.update(self._throughput.rates())
        self._throughput.restart()
        self._record.write(step, entry)
        self._record.show(brief(entry))
        self._watch.check(step, entry)
        return entry

    def log_evaluation(self, step, results):
        """Writes the results of an evaluation; see `log_evaluation`."""
        return log_evaluation(self._record, step, results)


def log_evaluation(record, step, results):
    """Writes the results of an evaluation; returns them with their names in the log."""
    found = {f"eval_{name}": value for name, value in results.items()}
    record.write(step, found)
    return found


def brief(entry):
    """Returns an entry's values as short texts: each loss with its accuracy, then others."""
    shown = {}
    for name in entry:
        if name.endswith("_loss") and name != "eval_loss":
            task = name.removesuffix("_loss")
            shown[task] = _loss_text(entry, task)
    shown["lr"] = f"{entry['learning_rate']:.2e}"
    shown["norm"] = f"{entry['gradient_norm']:.2f}"
    shown["ex/s"] = f"{entry['examples_per_second']:.1f}"
    shown["tok/s"] = f"{entry['tokens_per_second']:,.0f}"
    shown["TFLOP/s"] = f"{entry['model_tflops_per_second']:.3g}"
    if "model_flop_utilisation" in entry:
        shown["TFLOP/s"] += f" ({entry['model_flop_utilisation']:.0%})"
    return shown


def scores_of(results):
    """Returns an evaluation's metrics that `brief` does not show, as short text, by name."""
    others = {name: value for name, value in results.items() if not _is_shown(name)}
    return {name: f"{value:.4g}" for name, value in others.items() if "/" not in name}


def _is_shown(name):
    """Whether `brief` shows a result; other results are only in the log."""
    return name == "loss" or "_loss" in name or "_accuracy" in name


def _loss_text(entry, task):
    text = f"{entry[f'{task}_loss']:.3f}"
    accuracy = entry.get(f"{task}_accuracy")
    return text if accuracy is None else f"{text} ({accuracy:.1%})"
