"""Metrics of predicted classes and numbers, and the confusion matrix of classes."""

import math
import os
import warnings

import numpy as np

from nezha_tf.pictures.fonts import caption, font_families
from nezha_tf.util import console, errors, files

# The metrics of each label type; the first is the default of --best_metric.
OF_LABEL_TYPE = {
    "single": ("accuracy", "macro_f1", "matthews_correlation"),
    "multi": ("micro_f1", "macro_f1", "exact_match"),
    "regression": ("spearman", "pearson", "mean_squared_error"),
}
NAMES = tuple(dict.fromkeys(name for names in OF_LABEL_TYPE.values() for name in names))


def require_libraries():
    """Raises a `UserError` if the libraries of the extra [eval] are not installed."""
    errors.require_modules("metrics of classes need scikit-learn", "eval", "scipy", "sklearn")


def single(predicted, label_ids, labels):
    """Measures predictions of one class for each example.

    Args:
      predicted, label_ids: int [n], n at least 1.
      labels: names of the L classes.

    Returns:
      Dict of name to float: the metrics of the label type, and `f1/<label>` for each class, which
      is 0 if the class neither occurs nor is predicted. As in scikit-learn, the mean `macro_f1`
      leaves such classes out.
    """
    from sklearn import metrics

    return {
        "accuracy": float(metrics.accuracy_score(label_ids, predicted)),
        "macro_f1": _f1(label_ids, predicted, "macro"),
        "matthews_correlation": float(metrics.matthews_corrcoef(label_ids, predicted)),
        **_f1_by_class(label_ids, predicted, labels),
    }


def multi(predicted, label_ids, labels):
    """Measures predictions of any number of classes for each example.

    Args:
      predicted, label_ids: int [n, L], 0 or 1.
      labels: names of the L classes.

    Returns:
      Dict of name to float: as `single`. `exact_match` is the share of examples for which exactly
      the right classes are predicted.
    """
    from sklearn import metrics

    classes = range(len(labels))
    if len(labels) == 1:
        # scikit-learn would take one column for two classes, and measure the absence, too.
        predicted, label_ids = (np.pad(v, ((0, 0), (0, 1))) for v in (predicted, label_ids))
    return {
        "micro_f1": _f1(label_ids, predicted, "micro", classes),
        "macro_f1": _f1(label_ids, predicted, "macro", classes),
        "exact_match": float(metrics.accuracy_score(label_ids, predicted)),
        **_f1_by_class(label_ids, predicted, labels),
    }


def regression(predicted, label_ids):
    """Measures predicted numbers.

    Args:
      predicted, label_ids: float [n], n at least 1.

    Returns:
      Dict of name to float: the metrics of the label type; a correlation with constant values,
      which is undefined, is 0.
    """
    from scipy import stats
    from sklearn import metrics

    found = {"spearman": 0.0, "pearson": 0.0}
    if len(predicted) > 1:
        with warnings.catch_warnings(action="ignore"):  # that a correlation is undefined
            found["spearman"] = float(stats.spearmanr(predicted, label_ids).statistic)
            found["pearson"] = float(stats.pearsonr(predicted, label_ids).statistic)
    found = {name: 0.0 if math.isnan(value) else value for name, value in found.items()}
    return {**found, "mean_squared_error": float(metrics.mean_squared_error(label_ids, predicted))}


def _f1(label_ids, predicted, average, labels=None):
    from sklearn.metrics import f1_score

    found = f1_score(label_ids, predicted, average=average, labels=labels, zero_division=0)
    return np.asarray(found).tolist()


def _f1_by_class(label_ids, predicted, labels):
    found = _f1(label_ids, predicted, None, range(len(labels)))
    return {f"f1/{label}": score for label, score in zip(labels, found, strict=True)}


TABLE_FILE, PICTURE_FILE = "confusion.tsv", "confusion.png"
# Larger matrices are not printed.
_MOST_PRINTED = 15
# In pictures of more classes the counts are left out.
_MOST_WRITTEN = 30


def confusion_matrix(label_ids, predicted, num_labels):
    """Returns int [L, L]: rows are the right classes, columns the predicted ones."""
    from sklearn import metrics

    return metrics.confusion_matrix(label_ids, predicted, labels=range(num_labels))


def write_table(folder, matrix, labels):
    """Writes `confusion.tsv` with a row for each right class; returns it as aligned text."""
    path = os.path.join(folder, TABLE_FILE)
    rows = [("right \\ predicted", *labels)]
    rows += [(label, *counts) for label, counts in zip(labels, matrix.tolist(), strict=True)]
    files.write_text(path, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    title = f"confusion matrix in {path}"
    return console.table(title, rows) if len(labels) <= _MOST_PRINTED else title


def draw_matrix(folder, matrix, labels):
    """Draws `confusion.png`, the shares of each right class; returns a line that names the file.

    Without a font that has the labels' characters, the picture shows numbers instead.
    """
    # pyplot is not used, because its figures and backend belong to the whole process.
    from matplotlib.figure import Figure

    families = font_families("".join(labels))
    names = labels if families else [str(number) for number in range(1, len(labels) + 1)]
    inches = 2.5 + 0.45 * min(len(labels), _MOST_WRITTEN)
    figure = Figure(figsize=(inches + 1, inches), layout="constrained")
    panel = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, format=lambda share, _: f"{100 * share:.0f} %")
    style = {"family": families, "parse_math": False} if families else {"parse_math": False}
    panel.set_xticks(range(len(names)), names, rotation=45, ha="right", **style)
    panel.set_yticks(range(len(names)), names, **style)
    numbered = "" if families else ", numbered as in task.json"
    for write, message in (
        (panel.set_xlabel, f"predicted class{numbered}"),
        (panel.set_ylabel, f"right class{numbered}"),
    ):
        text, caption_style = caption(message)
        write(text, **caption_style)
    if len(labels) <= _MOST_WRITTEN:
        for row, column in np.ndindex(matrix.shape):
            color = "white" if shares[row, column] > 0.5 else "black"
            panel.text(column, row, matrix[row, column], ha="center", va="center", color=color)
    path = os.path.join(folder, PICTURE_FILE)
    with files.whole_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    lack = "" if families else "; no font here has the labels' characters, so they are numbered"
    return f"confusion matrix in {path}{lack}"
