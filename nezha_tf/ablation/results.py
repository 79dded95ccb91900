"""What the runs of an ablation came to: means, deviations and a paired test."""

import math
import os
import statistics
from typing import NamedTuple

from nezha_tf.util import files, forms
from nezha_tf.util.errors import UserError, require_modules

# Metrics are numbers of float32, or counts divided by others.
_ROUNDING = 1e-6


class Score(NamedTuple):
    """The values of a metric of a setting."""

    stage: str
    metric: str
    setting: str
    x: float | None  # see `plan.Setting`
    values: dict  # of seed to value
    # The values minus those of the first setting with the same seeds; [] for the first setting,
    # and for all if it has no values.
    differences: list

    @property
    def mean(self):
        return statistics.fmean(self.values.values())

    @property
    def deviation(self):
        """The sample standard deviation (n - 1), or None for a single value."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def p_value(self):
        """Student's paired t-test, two-sided.

        It is None if there are less than two differences, or all are the same but for rounding.
        """
        if len(self.differences) < 2:
            return None
        size = max(map(abs, [*self.values.values(), *self.differences]))
        if max(self.differences) - min(self.differences) <= _ROUNDING * size:
            return None
        from scipy import stats

        return float(stats.ttest_1samp(self.differences, 0).pvalue)


class AblationOutcome(NamedTuple):
    """What the runs that have ended came to."""

    # The settings of each metric of each stage, in the order of the file, but those without it.
    scores: list
    # Job name to what is wrong with its results: missing, unreadable, or a metric is not finite.
    faults: dict
    # A line for each metric that no run of its stage has, and that no setting left out could have.
    lacking: list


def require_libraries():
    """Raises a `UserError` if the libraries of the test and of the picture are missing."""
    what = "the table of an ablation needs scipy and matplotlib"
    require_modules(what, "ablation", "scipy", "matplotlib")


def scores_of(ablation, jobs, folder, is_done):
    """Returns the `AblationOutcome` of the `plan.jobs_of` of which `is_done(job)` is true."""
    scores, faults, lacking = [], {}, []
    for stage, about in ablation.stages.items():
        numbers = {}
        for key, job in _different(jobs, stage).items():
            if about.metrics and is_done(job):
                path = os.path.join(folder, job.name, about.results)
                try:
                    numbers[key] = _numbers(path, about.metrics)
                except UserError as error:
                    faults[job.name] = str(error)
        known = set().union(*numbers.values())
        for metric in about.metrics:
            # A metric may be one of settings that were left out.
            may_be_elsewhere = not ablation.is_whole and not known.isdisjoint(about.metrics)
            if numbers and metric not in known and not may_be_elsewhere:
                lacking.append(
                    f"{ablation.path}, stages.{stage}: no run has the metric {metric!r}; they have "
                    f"{', '.join(sorted(known))}"
                )
            scores += _scores_of_metric(ablation, stage, metric, numbers)
    return AblationOutcome(scores, faults, lacking)


def _different(jobs, stage):
    """Returns a dict of (setting, seed) to the job of a stage; each job once for a setting.

    A stage without a seed runs once, and its result must not look like that of several runs.
    """
    first = {}
    for (setting, of, seed), job in jobs.items():
        if of == stage:
            first.setdefault((setting, job.name), (seed, job))
    return {(setting, seed): job for (setting, _), (seed, job) in first.items()}


def _scores_of_metric(ablation, stage, metric, numbers):
    """Returns the list of `Score` of a metric, from a dict of (setting, seed) to its numbers."""
    scores, first = [], None
    for setting, about in ablation.settings.items():
        values = {
            seed: own[metric]
            for (name, seed), own in numbers.items()
            if name == setting and metric in own
        }
        # No other setting takes the place of the first one if that has no values.
        first = values if first is None else first
        if values:
            common = [seed for seed in values if seed in first and values is not first]
            differences = [values[seed] - first[seed] for seed in common]
            scores.append(Score(stage, metric, setting, about.x, values, differences))
    return scores


def tables(scores):
    """Returns scores as text in Markdown: a table for each stage, with a row for each setting."""
    stages = {}
    for score in scores:
        stages.setdefault(score.stage, []).append(score)
    return "\n".join(f"**{stage}**\n\n{_table(own)}" for stage, own in stages.items())


def _table(scores):
    settings = dict.fromkeys(score.setting for score in scores)
    runs = {name: max(len(s.values) for s in scores if s.setting == name) for name in settings}
    columns = [["setting", "---", *settings], ["runs", "---", *map(str, runs.values())]]
    for metric in dict.fromkeys(score.metric for score in scores):
        own = {score.setting: score for score in scores if score.metric == metric}
        cells = [_cells(own[name]) if name in own else ("", "", "") for name in settings]
        for title, column in zip(
            (metric, "difference", "p"), zip(*cells, strict=True), strict=True
        ):
            if any(column):
                columns.append([title, "---", *column])
    return "".join(f"| {' | '.join(row)} |\n" for row in zip(*columns, strict=True))


def _cells(score):
    """Returns texts: the mean and the deviation, the mean difference, and p."""
    deviation = "" if score.deviation is None else f" ± {score.deviation:.4f}"
    difference = f"{statistics.fmean(score.differences):+.4f}" if score.differences else ""
    p_value = "" if score.p_value is None else f"{score.p_value:.3f}"
    return f"{score.mean:.4f}{deviation}", difference, p_value


def to_json(scores):
    """Returns scores as a list of dicts for JSON."""
    return [
        {
            **score._asdict(),
            "mean": score.mean,
            "standard_deviation": score.deviation,
            "p_value": score.p_value,
        }
        for score in scores
    ]


def _numbers(path, metrics):
    """Returns the numbers of a JSON file, dict of name to float.

    Raises:
      UserError: the file is missing or damaged, or a metric in it is not finite.
    """
    results = files.read_object(path)
    again = "to run it again, remove its folder and the .json beside it"
    if results is None:
        raise UserError(
            f"there is no {path}, which a finished run should have written (results); {again}"
        )
    numbers = {name: float(value) for name, value in results.items() if forms.is_number(value)}
    for name in metrics:
        if not math.isfinite(numbers.get(name, 0.0)):
            raise UserError(f"{path}: {name} is {numbers[name]}; {again}")
    return numbers
