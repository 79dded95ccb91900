"""Draws the scores of an ablation: a panel for each metric, a point for each run."""

import math

from nezha_tf.pictures import fonts

_PANEL_INCHES = (3.6, 3.0)
_MOST_COLUMNS = 3
# Names longer than this are turned so that they do not overlap.
_LONG_NAME = 8


def draw(scores):
    """Returns a figure with a panel for each metric of each stage, of a list of `results.Score`.

    The runs are pale points, their mean is a dot, and the bar is a standard deviation to both
    sides. Where all settings of a panel have a number `x`, they lie along it and are joined by a
    line; else they are side by side.
    """
    # Without pyplot, because its state belongs to the whole process.
    from matplotlib.figure import Figure

    panels = {}
    for score in scores:
        panels.setdefault((score.stage, score.metric), []).append(score)
    columns = min(_MOST_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    size = (columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, ((stage, metric), own) in zip(axes, panels.items(), strict=False):
        _draw_panel(axis, own)
        (title,), style, _ = fonts.labels([f"{stage}: {metric.replace('_', ' ')}"])
        axis.set_title(title, fontsize="medium", **style)
        axis.grid(axis="y", alpha=0.3)
        axis.tick_params(labelsize="small")
    for axis in axes[len(panels) :]:
        axis.remove()
    return figure


def _draw_panel(axis, scores):
    along = [score.x for score in scores]
    is_line = None not in along
    places = along if is_line else list(range(len(scores)))
    for place, score in zip(places, scores, strict=True):
        values = list(score.values.values())
        axis.plot([place] * len(values), values, "o", color="0.6", markersize=4, alpha=0.7)
    axis.errorbar(
        places,
        [score.mean for score in scores],
        [score.deviation or 0.0 for score in scores],
        fmt="o-" if is_line else "o",
        color="tab:blue",
        markersize=6,
        capsize=3,
    )
    if is_line:
        _scale(axis, along)
        return
    names, style, _ = fonts.labels([score.setting for score in scores])
    axis.set_xticks(places, names, **style)
    axis.set_xlim(-0.5, len(places) - 0.5)
    if max(map(len, names)) > _LONG_NAME:
        axis.tick_params(axis="x", rotation=30)
        for label in axis.get_xticklabels():
            label.set_horizontalalignment("right")


def _scale(axis, along):
    """Makes the axis logarithmic if the numbers span a decade; a zero stays at its left end."""
    positive = sorted(x for x in along if x > 0)
    if min(along) >= 0 and positive and positive[-1] >= 10 * positive[0]:
        axis.set_xscale("symlog", linthresh=positive[0])
    axis.set_xticks(sorted(set(along)), [f"{x:g}" for x in sorted(set(along))])
    axis.minorticks_off()
