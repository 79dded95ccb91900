"""What the runs of an ablation came to: means, deviations and a paired test."""

import importlib
import os
import statistics
from typing import NamedTuple

from nezha_tf import files
from nezha_tf.errors import UserError


class Score(NamedTuple):
    """The values of a metric of a setting.

    Attributes:
      stage, metric, setting: names.
      x: see `plan.Setting`.
      values: dict of seed to value.
      differences: the values minus those of the first setting with the same seeds, a list.
    """

    stage: str
    metric: str
    setting: str
    x: float | None
    values: dict
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
        """Student's paired t-test, two-sided, or None if there are less than two differences.

        Where all differences are the same, there is nothing to test, and it is None as well.
        """
        if len(self.differences) < 2 or len(set(self.differences)) == 1:
            return None
        from scipy import stats

        return float(stats.ttest_1samp(self.differences, 0).pvalue)


def require_libraries():
    """Raises a `UserError` if the libraries of the test and of the picture are missing."""
    for name in ("scipy", "matplotlib"):
        try:
            importlib.import_module(name)
        except ImportError:
            raise UserError(f"{name} is not installed: pip install -e '.[ablation]'") from None


def scores_of(ablation, jobs, folder, is_done):
    """Reads the results of the runs that have ended.

    Args:
      ablation, jobs, folder: see `plan.jobs_of`, which returned the jobs.
      is_done: function of a job.

    Returns:
      List of `Score`: the settings of each metric of each stage, in the order of the file.

    Raises:
      UserError: a run's results lack a metric, or cannot be read.
    """
    scores = []
    for stage in ablation.stages:
        done = {key: job for key, job in jobs.items() if key[1] == stage and is_done(job)}
        for metric in ablation.stages[stage].metrics:
            first = None
            for setting in ablation.settings:
                values = {
                    seed: _value(ablation.stages[stage], os.path.join(folder, job.name), metric)
                    for (name, _, seed), job in done.items()
                    if name == setting
                }
                if values:
                    first = first or values
                    common = [seed for seed in values if seed in first and values is not first]
                    differences = [values[seed] - first[seed] for seed in common]
                    x = ablation.settings[setting].x
                    scores.append(Score(stage, metric, setting, x, values, differences))
    return scores


def table(scores):
    """Returns scores as a table in Markdown."""
    titles = ("stage", "metric", "setting", "mean", "deviation", "runs", "difference", "p")
    lines = [titles, ("---",) * len(titles), *map(_row, scores)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


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


def _row(score):
    difference = statistics.fmean(score.differences) if score.differences else None
    p_value = score.p_value
    return (
        score.stage,
        score.metric,
        score.setting,
        f"{score.mean:.4f}",
        "" if score.deviation is None else f"{score.deviation:.4f}",
        str(len(score.values)),
        "" if difference is None else f"{difference:+.4f}",
        "" if p_value is None else f"{p_value:.3f}",
    )


def _value(stage, folder, metric):
    path = os.path.join(folder, stage.results)
    found = files.read_object(path)
    if found is None:
        raise UserError(f"the run wrote no {path}; see results of its stage, or its flags")
    value = found.get(metric)
    if isinstance(value, bool) or not isinstance(value, int | float):
        numbers = ", ".join(name for name, of in found.items() if isinstance(of, int | float))
        raise UserError(f"{path} has no number {metric!r}; metrics can be {numbers}")
    return float(value)
