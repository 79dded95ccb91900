"""Sweeps: runs of a task with several learning rates and seeds, and their summary."""

import copy
import dataclasses
import gc
import json
import math
import os
from typing import NamedTuple

import keras
import numpy as np

from nezha_tf.checkpoints import run_folder
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.training import devices, model_card, output_folder, start
from nezha_tf.training import run as training_run
from nezha_tf.training.output_folder import alone_in
from nezha_tf.util import console, files, forms, storage
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import flags_of

# The flags and results of a run, written into its folder when the run has ended.
RESULTS_FILE = "run_results.json"
_DONE = {"flags": {str: forms.is_anything}, "results": {str: forms.is_number}}


class Outcome(NamedTuple):
    """A finished run: its learning rate, seed, folder, and the result of `Run.run`."""

    learning_rate: float
    seed: int
    folder: str
    results: dict


def run(settings, make_task):
    """Runs a fine-tuning program; returns whether this process is the one that writes.

    With one learning rate and one seed, this is `training.run.run`. Otherwise, each rate is run
    with each seed in its own folder below `output_dir`; finished runs are not repeated. Then
    `output_dir` gets a table of means and standard deviations, and the model card and predictions
    of the best run, which is the best seed of the rate with the best mean.

    Args:
      settings: the program's `FineTuningSettings`.
      make_task: function of the settings that returns a `FineTuning`.

    Raises:
      UserError: settings, files or data are bad, the folder has one run and not several, or the
        other way round, or a run failed; earlier runs stay.
      Terminated: the process was asked to end; see `endings`.
    """
    rates = learning_rates(settings.learning_rate)
    settings = output_folder.with_head_of_run(start.with_files_beside(settings))
    base = dataclasses.replace(settings, learning_rate=rates[0], num_seeds=1)
    if len(rates) == settings.num_seeds == 1:
        _require_no_sweep(settings)
        return training_run.run(base, make_task)
    if not settings.do_eval:
        raise UserError("comparing several learning rates or seeds needs --do_eval")
    strategy = training_run.prepare(base)
    _require_no_run(settings.output_dir)
    seeds = [(settings.seed + number) % 2**32 for number in range(settings.num_seeds)]
    grid = [(rate, seed) for rate in rates for seed in seeds]
    folders = [run_folder.sweep_member(settings.output_dir, *member) for member in grid]
    task = training_run.make(base, strategy, folders, make_task)
    sweep = Sweep(strategy, task)
    with alone_in(base, strategy):
        if devices.is_chief(strategy):  # for programs that get the sweep's folder
            output_folder.write_settings(settings.output_dir, task)
        sweep.conclude([sweep.outcome(*setting, grid) for setting in grid])
    return devices.is_chief(strategy)


# What opens a folder takes the one run or the best of the sweep: of both, one is out of date.
def _require_no_sweep(settings):
    if not (settings.do_train and settings.output_dir):
        return
    path = os.path.join(settings.output_dir, run_folder.SWEEP_FILE)
    if storage.exists(path):
        raise UserError(
            f"{path} is there: the folder is that of several runs; pass another --output_dir for "
            "one learning rate and one seed"
        )


def _require_no_run(folder):
    checkpoints = RunCheckpoints(folder, {})
    steps = checkpoints.steps()
    if steps:
        raise UserError(
            f"{checkpoints.path(steps[-1])} is there: the folder is that of one run; pass another "
            "--output_dir for several learning rates or seeds"
        )


def learning_rates(texts):
    """Returns the different rates of the flag, a list of floats.

    Raises:
      UserError: a text is not a finite number of at least 0.
    """
    rates = []
    for text in require_flag(texts, "learning_rate"):
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 <= rate < math.inf:
            raise UserError(
                f"--learning_rate={','.join(texts)}: {text!r} is not a rate; pass a number "
                "such as 2e-5, or several separated by commas"
            )
        rates.append(rate)
    return list(dict.fromkeys(rates))


class Sweep:
    """The runs of a sweep in one process, which may be one of several workers."""

    def __init__(self, strategy, task):
        """`task` is a `FineTuning` with the settings of one run; all runs use its data."""
        self._settings, self._strategy, self._task = task.settings, strategy, task
        self._is_chief = devices.is_chief(strategy)
        self._before = {}  # {learning rate: the compiled steps of the last run}

    def outcome(self, rate, seed, grid):
        """Returns the `Outcome` of a rate and a seed, after running it if it is not finished."""
        folder = run_folder.sweep_member(self._settings.output_dir, rate, seed)
        settings = dataclasses.replace(
            self._settings, learning_rate=rate, seed=seed, output_dir=folder
        )
        number = f"run {grid.index((rate, seed)) + 1} of {len(grid)}: {folder}"
        results = _finished(folder, settings, self._task.best_metric.name)
        self._say(f"{number}, done before" if results else number)
        if not results:
            run, results = self._run(settings, settings, self._before.get(rate))
            self._before = {rate: run.compiled}
            if self._is_chief:
                done = {"flags": flags_of(settings), "results": results}
                _write_json(os.path.join(folder, RESULTS_FILE), done)
        return Outcome(rate, seed, folder, results)

    def conclude(self, outcomes):
        """Writes the table, the best run's card and its predictions."""
        settings, metric = self._settings, self._task.best_metric
        best = best_of(outcomes, metric)
        if self._is_chief:
            text = table(outcomes, best, metric, settings.output_dir)
            files.write_text(self._path("sweep.txt"), text + "\n")
            _write_json(self._path(run_folder.SWEEP_FILE), summary(outcomes, best, metric))
            self._say(text)
            if settings.do_train:
                self._say(model_card.copy(best.folder, settings.output_dir))
        if settings.do_predict:
            self._predict(best)

    def _predict(self, best):
        """Writes the best run's predictions into the sweep's folder."""
        only = {"do_train": False, "do_eval": False, "plot": False}
        only |= {"learning_rate": best.learning_rate, "seed": best.seed}
        settings = dataclasses.replace(self._settings, **only)
        self._run(dataclasses.replace(settings, output_dir=best.folder), settings)

    def _run(self, settings, task_settings, before=None):
        try:
            task = copy.copy(self._task)  # with the same data
            task.settings = task_settings
            return training_run.run_in(self._strategy, task, settings, before)
        except UserError as error:
            raise UserError(f"{settings.output_dir}: {error}") from error
        finally:
            # Models and compiled steps have reference cycles.
            keras.backend.clear_session()
            gc.collect()

    def _path(self, name):
        return os.path.join(self._settings.output_dir, name)

    def _say(self, line):
        if self._is_chief:
            console.tell(line, flush=True)


def best_of(outcomes, metric):
    """Returns the `Outcome` of the best seed of the rate with the best mean; of ties the first."""

    def goodness(chosen):
        value = np.mean([outcome.results[f"eval {metric.name}"] for outcome in chosen])
        if math.isnan(value):
            return -math.inf
        return value if metric.higher_is_better else -value

    of_best_rate = max(_by_rate(outcomes).values(), key=goodness)
    return max(of_best_rate, key=lambda outcome: goodness([outcome]))


def statistics_of(outcomes):
    """Returns a dict for each rate: "learning_rate", and "mean" and "standard_deviation" by metric.

    They are of the metrics that all runs have. It is the sample standard deviation (n - 1), or
    None for a single run.
    """
    names = [
        name
        for name in outcomes[0].results
        if name.startswith(("eval ", "predict "))
        and name != "eval global_step"
        and all(name in outcome.results for outcome in outcomes)
    ]
    found = []
    for rate, runs in _by_rate(outcomes).items():
        values = {name: [run.results[name] for run in runs] for name in names}
        found.append(
            {
                "learning_rate": rate,
                "mean": {name: float(np.mean(own)) for name, own in values.items()},
                "standard_deviation": {
                    name: float(np.std(own, ddof=1)) if len(own) > 1 else None
                    for name, own in values.items()
                },
            }
        )
    return found


def table(outcomes, best, metric, folder):
    """Returns the sweep as text: a row per metric, `metric` first, and a column per rate."""

    def cell(rate, name):
        mean, deviation = rate["mean"][name], rate["standard_deviation"][name]
        return f"{mean:.4f}" if deviation is None else f"{mean:.4f} ± {deviation:.4f}"

    rates, first = statistics_of(outcomes), f"eval {metric.name}"
    rows = [("learning rate", [str(rate["learning_rate"]) for rate in rates])]
    for name in sorted(rates[0]["mean"], key=lambda name: name != first):
        rows.append((name, [cell(rate, name) for rate in rates]))
    width = max(len(cell) for _, cells in rows for cell in cells)
    lines = [
        (name, "  ".join(cell.ljust(width) for cell in cells).rstrip()) for name, cells in rows
    ]
    seeds = ", ".join(dict.fromkeys(str(outcome.seed) for outcome in outcomes))
    title = f"runs in {folder}: mean ± standard deviation over the seeds {seeds}"
    score = f"{metric.name} {best.results[first]:.4f}"
    return f"{console.table(title, lines)}\nbest run: {best.folder} ({score})"


def summary(outcomes, best, metric):
    """Returns the contents of `table` and the results of each run, as a dict for JSON."""
    return {
        "best_metric": metric.name,
        "best": {name: getattr(best, name) for name in ("learning_rate", "seed", "folder")},
        "rates": statistics_of(outcomes),
        "runs": [outcome._asdict() for outcome in outcomes],
    }


def _by_rate(outcomes):
    found = {}
    for outcome in outcomes:
        found.setdefault(outcome.learning_rate, []).append(outcome)
    return found


def _finished(folder, settings, metric):
    """Returns the results of a finished run with these settings, or None."""
    path = os.path.join(folder, RESULTS_FILE)
    found = files.read_object(path)
    if found is None:
        return None
    forms.require(found, _DONE, path)
    # The settings are converted in the same way as the file: tuples become lists.
    same = found["flags"] == json.loads(json.dumps(flags_of(settings)))
    if not same:
        return None
    forms.require(found["results"], {f"eval {metric}": forms.is_number}, path)
    return found["results"]


def _write_json(path, values):
    # Libraries of metrics return NumPy floats.
    text = json.dumps(values, indent=2, ensure_ascii=False, default=float)
    files.write_text(path, text + "\n")
