"""Means, deviations and the paired test against SciPy and NumPy; what the picture shows."""

import json
import math

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from toy_ablation import FILE, settings

from nezha_tf.ablation import plan
from nezha_tf.ablation.results import Score, scores_of, tables
from nezha_tf.pictures import scores as picture


def score(setting, values, first, x=None, metric="accuracy"):
    differences = [value - first[seed] for seed, value in values.items() if seed in first]
    return Score("reviews", metric, setting, x, values, [] if values is first else differences)


numbers = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=6)


@laws.examples(50)
@given(numbers, st.data())
def test_statistics_of_any_values(first, data):
    second = data.draw(st.lists(st.floats(-10, 10), min_size=len(first), max_size=len(first)))
    base, other = dict(enumerate(first)), dict(enumerate(second))
    found = score("b", other, base)
    assert found.mean == pytest.approx(np.mean(second))
    assert found.deviation == pytest.approx(np.std(second, ddof=1), abs=1e-12)
    differences = np.array(second) - np.array(first)
    if found.p_value is not None:
        expected = stats.ttest_rel(second, first).pvalue
        assert found.p_value == pytest.approx(expected, rel=1e-6, abs=1e-12)
    else:
        assert np.ptp(differences) <= 1e-6 * max(np.abs([*second, *differences]))


@laws.examples(50)
@given(st.integers(2, 5000), st.integers(1, 20), st.data())
def test_differences_that_are_equal_but_for_rounding_are_not_tested(count, gained, data):
    """Three seeds that each answer so many questions more, as accuracies of both precisions."""
    right = data.draw(st.lists(st.integers(0, count), min_size=3, max_size=3))
    dtype = data.draw(st.sampled_from((np.float32, np.float64)))
    first, second = (
        {seed: float(dtype(k + more) / dtype(count)) for seed, k in enumerate(right)}
        for more in (0, gained)
    )
    assert score("b", second, first).p_value is None
    if count < 1000:  # one answer more is no rounding
        second[0] += 1 / count
        assert score("b", second, first).p_value is not None


def test_one_value_has_no_deviation_and_no_test():
    lone = score("b", {7: 0.5}, {7: 0.25})
    assert (lone.mean, lone.deviation, lone.p_value) == (0.5, None, None)
    assert tables([lone]).splitlines()[2:] == [
        "| setting | runs | accuracy | difference |",
        "| --- | --- | --- | --- |",
        "| b | 1 | 0.5000 | +0.2500 |",
    ]


def test_settings_with_other_metrics_share_a_table():
    """As pretraining objectives, which have losses of different names."""
    scores = [
        score("a", {1: 0.5, 2: 0.75}, {}),
        score("c", {1: 3.0}, {1: 3.0, 2: 4.0}, metric="loss"),
        score("b", {1: 0.25, 2: 0.5}, {1: 0.5, 2: 0.75}),
    ]
    assert [line.replace(" ", "") for line in tables(scores).splitlines()[2:]] == [
        "|setting|runs|accuracy|difference|loss|difference|",
        "|---|---|---|---|---|---|",
        "|a|2|0.6250±0.1768||||",
        "|c|1|||3.0000|+0.0000|",
        "|b|2|0.3750±0.1768|-0.2500|||",
    ]


@pytest.mark.parametrize("along", ((None, None, None), (0, 3, 100)))
def test_the_picture_has_each_run_and_each_mean(along):
    values = [{1: 0.5, 2: 0.7}, {1: 0.4}, {1: 0.9, 2: 0.8}]
    names = ("$plain$", "a_longer_name", "c")
    scores = [
        score(name, own, values[0], x, metric)
        for metric in ("accuracy", "macro_f1")
        for name, own, x in zip(names, values, along, strict=True)
    ]
    figure = picture.draw(scores)
    assert [axis.get_title() for axis in figure.axes] == ["reviews: accuracy", "reviews: macro f1"]
    figure.savefig("/dev/null", format="png")
    for axis in figure.axes:
        drawn = {(x, y) for line in axis.lines for x, y in zip(*line.get_data(), strict=True)}
        places = range(3) if along[0] is None else along
        for place, own in zip(places, values, strict=True):
            assert {(place, value) for value in own.values()} <= drawn
            assert any(x == place and abs(y - np.mean([*own.values()])) < 1e-9 for x, y in drawn)
        labels = [label.get_text() for label in axis.get_xticklabels()]
        assert labels == (list(names) if along[0] is None else ["0", "3", "100"])


def test_the_picture_of_names_in_chinese_has_no_missing_glyphs(recwarn):
    figure = picture.draw([score("函数式", {1: 0.5}, {}), score("旋转", {1: 0.75}, {})])
    figure.savefig("/dev/null", format="png")
    assert not [str(each.message) for each in recwarn if "missing from" in str(each.message)]


def outcome(folder, text, lacking=(), metrics=("score",), **changes):
    """Returns the `Outcome` of runs, each with its number for each metric; (): none of `lacking`.

    Args:
      lacking: beginnings of the names of jobs that left no results.
      metrics: names of the numbers that the others left; NaN where a flag is nan.
    """
    ablation = plan.read(settings(folder, text, seeds=("3", "1"), **changes))
    jobs = plan.jobs_of(ablation, str(folder))
    ablation, jobs = plan.narrowed(ablation, jobs, changes.get("settings", ()))
    for number, job in enumerate(dict.fromkeys(jobs.values())):
        (folder / job.name).mkdir(parents=True)
        if not job.name.startswith(lacking or "-"):
            values = dict.fromkeys(metrics, math.nan if "rate=nan" in str(job.flags) else number)
            (folder / job.name / "eval_results.json").write_text(json.dumps(values))
    return scores_of(ablation, jobs, str(folder), lambda job: not job.name.startswith("second/off"))


THIRD = "[settings.slow]\nsecond.rate = 1\n"


@pytest.mark.parametrize(
    "text",
    (
        FILE.replace(".plain]", ".off]"),  # its runs have not ended
        FILE.replace("[settings.plain]", '[settings.plain]\nwithout = ["second"]'),
    ),
)
def test_without_the_first_setting_nothing_is_compared(tmp_path, text):
    """The second setting does not take its place."""
    found = outcome(tmp_path, text + THIRD)
    assert [(score.setting, score.differences) for score in found.scores] == [
        ("fast", []),
        ("slow", []),
    ]
    assert not found.faults and not found.lacking


def test_settings_and_stages_with_fewer_runs_are_compared_by_those_that_they_have(tmp_path):
    plain, fast = outcome(tmp_path / "a", FILE + "num_seeds = 1\n").scores
    assert list(plain.values) == [3, 1] and list(fast.values) == [3]
    assert fast.differences == [fast.values[3] - plain.values[3]]
    once = FILE.replace("program =", "is_seeded = false\nprogram =")
    assert [len(score.values) for score in outcome(tmp_path / "b", once).scores] == [1, 1]


def test_metrics_that_no_run_has_are_named(tmp_path):
    other, both = (FILE.replace('"score"', names) for names in ('"f1"', '"score", "f1"'))
    for name, text in (("a", other), ("b", both)):
        (line,) = outcome(tmp_path / name, text).lacking
        assert "no run has the metric 'f1'; they have score" in line
    # It may be a metric of the setting that is left out.
    assert not outcome(tmp_path / "c", both, settings=("fast",)).lacking


def test_runs_without_results_do_not_hide_the_others(tmp_path):
    """They wrote nothing, or a number that is not finite."""
    text = FILE.replace("second.rate = 10", "second.rate = nan") + THIRD
    found = outcome(tmp_path, text, lacking=("second/plain/seed1",))
    values = {score.setting: list(score.values) for score in found.scores}
    assert values == {"plain": [3], "slow": [3, 1]}
    missing = found.faults.pop("second/plain/seed1")
    assert missing.startswith("there is no ") and "remove its folder" in missing
    assert list(found.faults) == ["second/fast/seed3", "second/fast/seed1"]
    assert all("eval_results.json: score is nan; to run it" in x for x in found.faults.values())
