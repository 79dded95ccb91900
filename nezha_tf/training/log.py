"""The log of a run: lines on the screen, and the file of its metrics."""

import collections
import json
import os

import tensorflow as tf

from nezha_tf.checkpoints.name_table import tf1_name
from nezha_tf.checkpoints.run_folder import METRICS_FILE, read_metrics
from nezha_tf.objectives.losses import WeightedMean
from nezha_tf.training.records import Record
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import write_text


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


class SilentScreen:
    """The screen of workers that are not the chief; it shows nothing."""

    def advance(self, steps):
        pass

    def show(self, values):
        pass

    def say(self, line):
        pass

    def close(self):
        pass


class Screen:
    """Shows the progress of a run."""

    def __init__(self, first_step, last_step):
        """Args:
        first_step: the step from which the run continues.
        last_step: the step at which it ends; None: the clock ends it.
        """
        self._bar = console.progress(
            total=last_step, initial=first_step, desc="training", unit="step"
        )

    def advance(self, steps):
        """Counts steps on the progress bar."""
        self._bar.update(steps)

    def show(self, values):
        """Shows values beside the progress bar."""
        self._bar.set_postfix_str(" ".join(f"{name} {value}" for name, value in values.items()))

    def say(self, line):
        """Prints a line without breaking the progress bar."""
        console.say(line)

    def close(self):
        """Closes the progress bar."""
        self._bar.close()


class MetricsFile(Record):
    """Writes `metrics.jsonl`; entries of steps after that of the start are removed from it."""

    def start(self, folder, flags, step):
        self._path = os.path.join(folder, METRICS_FILE)
        _drop_later_entries(self._path, step)

    def scalars(self, step, values):
        with storage.open_binary(self._path, "ab") as file:
            file.write((json.dumps({"step": step, **values}) + "\n").encode())


def _drop_later_entries(path, step):
    """Removes the entries of a killed run after the checkpoint from which this run continues."""
    kept = [entry for entry in read_metrics(os.path.dirname(path)) if entry["step"] <= step]
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in kept))


class Journal:
    """Writes the entries of a run's log."""

    def __init__(self, screen, records, monitor, throughput, watch):
        """Args:
        screen: `Screen`, or `SilentScreen`.
        records: `Records`.
        monitor: `Monitor`.
        throughput: `Throughput`.
        watch: `DivergenceWatch`.
        """
        self._screen = screen
        self._records = records
        self._monitor = monitor
        self._throughput = throughput
        self._watch = watch

    def restart(self):
        """Starts the measurement of rates."""
        self._throughput.restart()

    def advance(self, made, report):
        """Counts updates (`made`), and what a `StepReport` says of these and of skipped steps."""
        self._screen.advance(made)
        self._throughput.add(*map(float, (report.examples, report.tokens, report.places)))

    def leave_out(self, seconds):
        """Excludes the time of a pause from the rates."""
        self._throughput.leave_out(seconds)

    def say(self, line):
        """Prints a line."""
        self._screen.say(line)

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
        self._records.scalars(step, entry)
        self._screen.show(brief(entry))
        self._watch.check(step, entry)
        return entry

    def log_evaluation(self, step, results):
        """Writes the results of an evaluation; see `log_evaluation`."""
        return log_evaluation(self._records, step, results)


def log_evaluation(records, step, results):
    """Tells `Records` the results of an evaluation; returns them with their names in the log."""
    found = {f"eval_{name}": value for name, value in results.items()}
    records.scalars(step, found)
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


def result_text(value):
    """Returns a number of the table of results as text."""
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


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


class Monitor:
    """Reads norms, trust ratios and counters for each log entry."""

    def __init__(self, train_step, optimizer, loss_scale, reader):
        """Args:
        train_step: `TrainStep`.
        optimizer: its optimizer.
        loss_scale: its `DynamicLossScale`, or None.
        reader: `ExampleReader`.
        """
        self._train_step = train_step
        self._loss_scale = loss_scale
        self._reader = reader
        self._metrics = optimizer.metrics
        self._groups = [_group(tf1_name(variable.path)) for variable in train_step.variables]

    def values(self, report):
        """Returns a dict of name to float; `report` is the last `StepReport`."""
        values = {
            "weight_norm": float(_norm([v.value for v in self._train_step.variables])),
            "skipped_steps": self._train_step.count("skipped_steps"),
            "corrupt_records": self._reader.corrupt_records,
        }
        if self._train_step.clock is not None:
            values["train_minutes"] = float(self._train_step.clock.minutes)
        if self._loss_scale is not None:
            values["loss_scale"] = float(tf.convert_to_tensor(self._loss_scale.scale))
        for metric in self._metrics:
            figures = collections.defaultdict(list)
            for group, figure in zip(self._groups, report.trust_ratios.numpy(), strict=True):
                figures[group].append(float(figure))
            values.update({f"{metric}/{g}": sum(f) / len(f) for g, f in figures.items()})
        return values


@tf.function(autograph=False)
def _norm(tensors):
    return tf.linalg.global_norm(tensors)


def _group(name):
    """Returns the part of the model with a weight: embeddings, layer_3, group_0, pooler, heads."""
    parts = name.split("/")
    if parts[0] == "bert":
        return next((part for part in parts if part.startswith(("layer_", "group_"))), parts[1])
    return "heads"


_SHOWN = ("loss", "learning_rate", "gradient_norm", "weight_norm")
_ENTRIES_SHOWN = 10
# Lower losses count as this one: near 0, rounding alone changes a loss by any factor.
_NEGLIGIBLE = 1e-3


class DivergenceWatch:
    """Stops a run whose loss stays far above its minimum."""

    def __init__(self, factor, patience, entries=()):
        """Args:
        factor: a loss above this factor times the lowest loss is too high; 0: never stop.
        patience: number of consecutive log entries with a too high loss that end the run.
        entries: earlier log entries, for a resumed run.
        """
        self._factor = factor
        self._patience = patience
        self._lowest = min((e["loss"] for e in entries if "loss" in e), default=float("inf"))
        self._latest = collections.deque(maxlen=_ENTRIES_SHOWN)
        self._above = 0

    def check(self, step, entry):
        """Checks a log entry.

        Raises:
          UserError: the loss has diverged; the message ends with a table of the latest entries.
        """
        self._latest.append((step, entry))
        self._lowest = min(self._lowest, entry["loss"])
        is_above = self._factor and entry["loss"] > self._factor * max(self._lowest, _NEGLIGIBLE)
        self._above = self._above + 1 if is_above else 0
        if is_above and self._above >= self._patience:
            raise UserError(
                f"the loss has diverged: {entry['loss']:.4g} at step {step}, after "
                f"{self._lowest:.4g}; lower --learning_rate, warm up longer, or pass "
                "--divergence_factor=0 to continue anyway"
                f"\n{self.table()}"
            )

    def table(self):
        """Returns the latest entries as text."""
        rows = [
            (f"step {step}", "  ".join(f"{name} {entry[name]:<10.4g}" for name in _SHOWN))
            for step, entry in self._latest
        ]
        return console.table("the latest log entries", rows)
