"""Draws the curves of metrics that runs recorded."""

import math
import os
import statistics
from typing import NamedTuple

from nezha_tf.checkpoints.run_folder import METRICS_FILE, read_metrics
from nezha_tf.pictures.fonts import caption, require_matplotlib
from nezha_tf.pictures.settings import PlotSettings
from nezha_tf.util import files, storage
from nezha_tf.util.errors import UserError, require_flag

# The metrics that are drawn by default, if they were recorded, and their titles. Losses and
# accuracies of other objectives and tasks are drawn before them, under their own names.
TITLES = {
    "masked_lm_loss": "masked-LM loss",
    "masked_lm_accuracy": "masked-LM accuracy",
    "next_sentence_accuracy": "next-sentence accuracy",
    "classification_loss": "classification loss",
    "accuracy": "accuracy",
    "learning_rate": "learning rate",
    "gradient_norm": "gradient norm, before clipping",
    "loss_scale": "loss scale",
    "trust_ratio": "LAMB trust ratio",
    "tokens_per_second": "tokens per second",
}
# Of two classes, the accuracy says the same more plainly.
_NOT_BY_DEFAULT = "next_sentence_loss"
# This metric has one value for each part of the model: trust_ratio/layer_3.
_TRUST_RATIO = "trust_ratio"
# Metrics that get a logarithmic axis if their values differ by more than a factor of 10.
_WIDE = ("gradient_norm", "weight_norm", _TRUST_RATIO)
# Metrics that are set, not measured; they are never smoothed.
_SET = ("learning_rate", "loss_scale")
_HELD_OUT = "eval_"
# The label of a line over which a smoothed one is drawn ends so.
_RAW = ", raw"
_TRAINING_STYLE = {"linewidth": 0.9, "alpha": 0.85}
_HELD_OUT_STYLE = {
    "linewidth": 1.2,
    "marker": "o",
    "markersize": 4,
    "markeredgecolor": "white",
}
_MOST_COLUMNS = 4
_PANEL_INCHES = (4.2, 3.1)
# The legend of the trust ratios names this many parts of the model at most.
_MOST_PARTS_NAMED = 6


class RunCurves(NamedTuple):
    """A run: its name in the legend, and the entries of its log as `read_metrics` returns them."""

    label: str
    entries: list


def plot_curves(folder):
    """Draws the curves of one run into its `curves.png`; returns the path of the file."""
    path = os.path.join(folder, "curves.png")
    plot_runs(PlotSettings(runs=(folder,), output_file=path))
    return path


def plot_runs(settings):
    """Draws the curves of `PlotSettings` into one PNG file; after an error there is no file.

    Of each metric the held-out values (`eval_...`) are drawn as well; `trust_ratio` stands for the
    values of all parts of the model. Returns text to print.
    """
    folders = require_flag(settings.runs, "runs")
    path = require_flag(settings.output_file, "output_file")
    require_matplotlib()
    if not path.endswith(".png"):
        raise UserError(f"--output_file={path} must end in .png; the picture is a PNG file")
    labels = settings.labels or files.folder_names(folders)
    if len(labels) != len(folders):
        raise UserError(
            f"--labels has {len(labels)} names, but --runs has {len(folders)}; name each run once"
        )
    runs = [
        RunCurves(label, _entries(folder)) for label, folder in zip(labels, folders, strict=True)
    ]
    figure = draw(runs, _chosen(settings.metrics, runs), settings.smoothing)
    with files.whole_file(path) as temporary, storage.open_binary(temporary, "wb") as file:
        figure.savefig(file, dpi=120, format="png")
    return f"curves in {path}"


def draw(runs, metrics, smoothing=1):
    """Returns a matplotlib figure with a panel for each metric, of a list of `RunCurves`.

    With `smoothing`, each training value is drawn as the mean of this many entries around it.
    """
    # Without pyplot, because its state belongs to the whole process.
    from matplotlib.figure import Figure

    rows, columns = _grid(len(metrics))
    size = columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1]
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
    for panel, metric in zip(panels, metrics, strict=False):
        by_part = metric == _TRUST_RATIO and len(runs) == 1
        if by_part:
            _draw_parts(panel, runs[0], smoothing)
        else:
            _draw_metric(panel, runs, metric, smoothing)
        _dress(panel, metric)
        if by_part:
            _name_parts(panel)
        elif metric == _TRUST_RATIO:
            _set_title(panel, f"{TITLES[metric]}, mean of all parts")
    for panel in panels[len(metrics) :]:
        panel.remove()
    text, style = caption("step")
    figure.supxlabel(text, fontsize="medium", **style)
    _add_legend(figure, runs, metrics)
    return figure


def _grid(count):
    """Returns (rows, columns) for a number of panels: more columns than rows, few empty cells."""
    rows = max(round(math.sqrt(0.6 * count)), math.ceil(count / _MOST_COLUMNS))
    return rows, math.ceil(count / rows)


def _entries(folder):
    entries = read_metrics(folder)
    if not entries:
        raise UserError(
            f"{folder} has no {METRICS_FILE} with entries; name the --output_dir of a run that "
            "has trained for at least --log_steps steps"
        )
    return entries


def _chosen(metrics, runs):
    """Returns the metrics to draw: those that the user named, or the usual ones, if recorded."""
    names = {name for run in runs for entry in run.entries for name in entry} - {"step"}
    recorded = {_TRUST_RATIO if _is_part(name) else name.removeprefix(_HELD_OUT) for name in names}
    # A panel has the training and the held-out values of a metric.
    metrics = list(dict.fromkeys(metric.removeprefix(_HELD_OUT) for metric in metrics))
    unknown = [metric for metric in metrics if metric not in recorded]
    if unknown:
        raise UserError(
            f"--metrics: no run recorded {unknown[0]!r}; choose from {', '.join(sorted(recorded))}"
        )
    others = sorted(
        name for name in recorded - {_NOT_BY_DEFAULT, *TITLES} if _is_of_objective(name)
    )
    chosen = metrics or others + [metric for metric in TITLES if metric in recorded]
    if not chosen:
        names = ", ".join(sorted(recorded))
        raise UserError(f"no run recorded a usual metric; pass --metrics, chosen from {names}")
    return chosen


def _is_of_objective(metric):
    return metric.endswith(("_loss", "_accuracy")) and "/" not in metric


def _draw_metric(panel, runs, metric, smoothing):
    for run, color in zip(runs, _colors(len(runs)), strict=True):
        if metric == _TRUST_RATIO:
            steps, values = _mean_of_parts(run.entries)
        else:
            steps, values = _series(run.entries, metric)
        entries = 1 if metric in _SET else smoothing
        _draw_training(panel, steps, values, entries, color, f"{run.label} {metric}")
        steps, values = _series(run.entries, _HELD_OUT + metric)
        if steps:
            label = f"{run.label} {_HELD_OUT}{metric}"
            panel.plot(steps, values, color=color, label=label, **_HELD_OUT_STYLE)


def _draw_parts(panel, run, smoothing):
    """Draws the trust ratio of each part of the model; later parts have lighter colours."""
    from matplotlib import colormaps

    names = list(dict.fromkeys(name for entry in run.entries for name in entry if _is_part(name)))
    colors = colormaps["viridis"]([0.95 * i / max(1, len(names) - 1) for i in range(len(names))])
    for name, color in zip(names, colors, strict=True):
        part = name.partition("/")[2]
        _draw_training(panel, *_series(run.entries, name), smoothing, color, part)


def _name_parts(panel):
    """Adds a legend with some of the parts of the model, above their lines."""
    lines = [line for line in panel.lines if not line.get_label().endswith(_RAW)]
    count = min(len(lines), _MOST_PARTS_NAMED)
    named = [round(i * (len(lines) - 1) / max(1, count - 1)) for i in range(count)]
    low, high = panel.get_ylim()
    is_log = panel.get_yscale() == "log"
    # The legend takes a quarter of the height.
    panel.set_ylim(low, high * (high / low) ** (1 / 3) if is_log else high + (high - low) / 3)
    handles = [lines[index] for index in named]
    panel.legend(handles=handles, fontsize="small", loc="upper center", ncols=3, frameon=False)


def _draw_training(panel, steps, values, smoothing, color, label):
    """Draws a line; if it is smoothed, over a pale line of the values themselves."""
    if steps and smoothing > 1:
        panel.plot(steps, values, color=color, linewidth=0.8, alpha=0.25, label=label + _RAW)
        values = _smoothed(values, smoothing)
    if steps:
        mark = "." if len(steps) == 1 else None  # A line of one point is invisible.
        panel.plot(steps, values, color=color, label=label, marker=mark, **_TRAINING_STYLE)


def _colors(count):
    from matplotlib import colormaps

    if count <= 10:
        return colormaps["tab10"].colors[:count]
    return list(colormaps["turbo"]([index / (count - 1) for index in range(count)]))


def _series(entries, name):
    """Returns (steps, values) of the entries that have this metric."""
    own = [entry for entry in entries if name in entry]
    return [entry["step"] for entry in own], [entry[name] for entry in own]


def _mean_of_parts(entries):
    """Returns (steps, means of the trust ratios over the parts of the model)."""
    own = [(entry["step"], [entry[name] for name in entry if _is_part(name)]) for entry in entries]
    own = [(step, ratios) for step, ratios in own if ratios]
    return [step for step, _ in own], [statistics.fmean(ratios) for _, ratios in own]


def _is_part(name):
    return name.startswith(f"{_TRUST_RATIO}/")


def _smoothed(values, count):
    """Returns the mean of each value and its neighbours, the same number on both sides."""
    last = len(values) - 1
    reaches = [min(count // 2, index, last - index) for index in range(len(values))]
    return [
        sum(values[i - reach : i + reach + 1]) / (2 * reach + 1) for i, reach in enumerate(reaches)
    ]


def _dress(panel, metric):
    from matplotlib.ticker import EngFormatter, MaxNLocator

    _set_title(panel, TITLES.get(metric, metric.replace("_", " ").replace("/", ", ")))
    panel.grid(alpha=0.3)
    panel.tick_params(labelbottom=True, labelsize="small")
    panel.tick_params(which="minor", labelsize="small")
    panel.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    values = [value for line in panel.lines for value in line.get_ydata()]
    if metric == "loss_scale":
        panel.set_yscale("log", base=2)
    elif metric in _WIDE and _spans_a_decade(values):
        panel.set_yscale("log")
    elif metric.endswith("accuracy"):
        panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g} %")
    elif metric.endswith("_per_second"):
        panel.yaxis.set_major_formatter(EngFormatter(sep=""))
    else:
        panel.ticklabel_format(axis="y", scilimits=(-2, 4), useMathText=True)


def _set_title(panel, message):
    text, style = caption(message)
    panel.set_title(text, fontsize="medium", **style)


def _spans_a_decade(values):
    positive = [value for value in values if 0 < value < math.inf]
    return bool(positive) and max(positive) > 10 * min(positive)


def _add_legend(figure, runs, metrics):
    """Adds a legend: the runs, if there are several; and the two kinds of lines, if both occur."""
    from matplotlib.lines import Line2D

    handles, labels = [], []
    if len(runs) > 1:
        handles = [Line2D([], [], color=color, linewidth=2.5) for color in _colors(len(runs))]
        labels = [(run.label, {}) for run in runs]
    names = {name for run in runs for entry in run.entries for name in entry}
    if any(_HELD_OUT + metric in names for metric in metrics):
        color = "0.35" if len(runs) > 1 else _colors(1)[0]
        styles = _TRAINING_STYLE, _HELD_OUT_STYLE
        handles += [Line2D([], [], color=color, **style) for style in styles]
        labels += [caption("training"), caption("held out")]
    if not handles:
        return
    # As many columns as fit, at about 11 letters per inch.
    longest = max(len(label) for label, _ in labels) + 6
    columns = max(1, min(len(labels), int(figure.get_figwidth() * 11 / longest)))
    legend = figure.legend(
        handles, [" "] * len(labels), loc="outside upper center", ncols=columns, frameon=False
    )
    # The texts are set later: matplotlib hides labels that begin with "_", and $...$ is a formula.
    for text, (label, style) in zip(legend.get_texts(), labels, strict=True):
        text.set(parse_math=False, text=label, **style)
