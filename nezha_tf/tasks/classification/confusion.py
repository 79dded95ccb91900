"""The confusion matrix: a file, a table and a picture."""

import os

import numpy as np

from nezha_tf.pictures.fonts import font_families
from nezha_tf.util import console, files

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


def draw(folder, matrix, labels):
    """Draws `confusion.png`, the shares of each right class; returns a line that names the file.

    If no font of this machine has the labels' characters, the picture shows numbers instead.
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
    panel.set_xlabel(f"predicted class{numbered}")
    panel.set_ylabel(f"right class{numbered}")
    if len(labels) <= _MOST_WRITTEN:
        for row, column in np.ndindex(matrix.shape):
            color = "white" if shares[row, column] > 0.5 else "black"
            panel.text(column, row, matrix[row, column], ha="center", va="center", color=color)
    path = os.path.join(folder, PICTURE_FILE)
    with files.whole_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    lack = "" if families else "; no font here has the labels' characters, so they are numbered"
    return f"confusion matrix in {path}{lack}"
