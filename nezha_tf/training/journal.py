"""The log of a training run, with rates and the check for divergence."""


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
