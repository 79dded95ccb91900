"""A picture of a run's curves; needs the extra [plot]."""

import os

from nezha_tf.errors import UserError
from nezha_tf.files import whole_file
from nezha_tf.training.summaries import read_metrics

# (title, entries drawn over the steps)
_PANELS = (
    ("masked-LM loss", ("masked_lm_loss", "eval_masked_lm_loss")),
    ("masked-LM accuracy", ("masked_lm_accuracy", "eval_masked_lm_accuracy")),
    ("next-sentence accuracy", ("next_sentence_accuracy", "eval_next_sentence_accuracy")),
    ("learning rate", ("learning_rate",)),
)


def require_matplotlib():
    """Returns matplotlib, set up to draw without a screen.

    Raises:
      UserError: it is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise UserError("--plot needs matplotlib: pip install 'nezha_tf[plot]'") from error
    matplotlib.use("Agg")
    return matplotlib


def plot_curves(folder):
    """Draws the entries of a run's `metrics.jsonl` into `curves.png`, whose path it returns."""
    require_matplotlib()
    from matplotlib import pyplot

    entries = read_metrics(folder)
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 6.5), sharex=True, layout="constrained")
    for panel, (title, names) in zip(axes.flat, _PANELS, strict=True):
        for name in names:
            points = [(entry["step"], entry[name]) for entry in entries if name in entry]
            if points:
                is_eval = name.startswith("eval_")
                panel.plot(
                    *zip(*points, strict=True),
                    label="held out" if is_eval else "training",
                    linewidth=1,
                    marker="o" if is_eval else None,
                )
        panel.set_title(title)
        panel.grid(alpha=0.3)
        if len(panel.lines) > 1:
            panel.legend()
    for panel in axes[-1]:
        panel.set_xlabel("step")
    path = os.path.join(folder, "curves.png")
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    pyplot.close(figure)
    return path
