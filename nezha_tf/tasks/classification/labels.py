"""The types of labels (one class, several classes, a number), and where the classes come from."""

import contextlib
import json
import math

import numpy as np

from nezha_tf.data.rows import json_text
from nezha_tf.tasks.classification import loss as losses
from nezha_tf.tasks.classification import metrics
from nezha_tf.tasks.finetuning.task import labels_of_run
from nezha_tf.util.errors import UserError

# With --label_type=multi, classes with at least this probability are predicted.
THRESHOLD = 0.5


class SingleLabel:
    """Labels that are one of L classes.

    Attributes:
      labels: the L names of the classes.
      num_outputs: number of the model's outputs for an example.
      has_one_class: whether each example has exactly one class.
      objective: the class of the training objective.
    """

    has_one_class = True
    objective = losses.ClassificationLoss

    def __init__(self, labels, separator):
        """Args:
        labels: names of the classes.
        separator: what stands between the classes of an example, if it may have several.
        """
        self.labels = labels
        self.num_outputs = len(labels)
        self._separator = separator
        self._ids = {label: index for index, label in enumerate(labels)}

    @staticmethod
    def labels_in(text, separator):
        """Returns the names of classes in a label's text; raises ValueError if it is malformed."""
        return [text]

    def encode(self, text):
        """Returns an example's `label_ids` (a number, or a list of numbers) for its label's text.

        Raises:
          ValueError: the text is not a valid label; the message says why.
        """
        return self._id_of(text)

    def array(self, values):
        """Returns the `label_ids` [n, ...] of examples from their encoded labels."""
        return np.array(values, np.int32)

    def measure(self, outputs, label_ids):
        """Returns the metrics, a dict of name to float.

        Args:
          outputs: dict of the objective's predictions: name to a list of n arrays.
          label_ids: [n, ...].
        """
        return metrics.single(self.predicted(outputs), label_ids, self.labels)

    def predicted(self, outputs):
        """Returns the most probable classes, int [n]."""
        return np.argmax(np.stack(outputs["probabilities"]), axis=-1)

    def predictions(self, outputs):
        """Returns a list of a dict for each example, the values to write to the file."""
        return [
            {
                "prediction": self._name(predicted),
                "probabilities": dict(zip(self.labels, probabilities.tolist(), strict=True)),
            }
            for predicted, probabilities in zip(
                self.predicted(outputs), outputs["probabilities"], strict=True
            )
        ]

    def _name(self, predicted):
        return self.labels[predicted]

    def _id_of(self, label):
        if label not in self._ids:
            known = ", ".join(self.labels[:20]) + (", ..." if len(self.labels) > 20 else "")
            raise ValueError(f"label {label!r} is not one of the model's labels ({known})")
        return self._ids[label]


class MultiLabel(SingleLabel):
    """Labels of any number of classes: names with a separator in the file, or a JSON list."""

    has_one_class = False
    objective = losses.MultiLabelLoss

    @staticmethod
    def labels_in(text, separator):
        if not text.startswith("["):
            return [name.strip() for name in text.split(separator) if name.strip()]
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"label {text[:40]!r} is not a JSON list ({error})") from error
        return [name.strip() if isinstance(name, str) else json_text(name) for name in names]

    def encode(self, text):
        row = [0] * len(self.labels)
        for name in self.labels_in(text, self._separator):
            row[self._id_of(name)] = 1
        return row

    def measure(self, outputs, label_ids):
        return metrics.multi(self.predicted(outputs), label_ids, self.labels)

    def predicted(self, outputs):
        """Returns int [n, L], 1 for predicted classes and 0 for the others."""
        return (np.stack(outputs["probabilities"]) >= THRESHOLD).astype(np.int32)

    def _name(self, predicted):
        return [self.labels[index] for index in np.flatnonzero(predicted)]


class Number:
    """Labels that are numbers, for regression; attributes and methods: see `SingleLabel`."""

    has_one_class = False
    objective = losses.RegressionLoss
    labels = ()
    num_outputs = 1

    def encode(self, text):
        try:
            value = float(text)
        except ValueError as error:
            raise ValueError(f"label {text[:40]!r} is not a number") from error
        if not math.isfinite(value):
            raise ValueError(f"label {text} is not finite")
        if abs(value) > float(np.finfo(np.float32).max):
            raise ValueError(f"label {text} is too large for float32; scale the labels")
        return value

    def array(self, values):
        return np.array(values, np.float32)

    def measure(self, outputs, label_ids):
        return metrics.regression(np.stack(outputs["value"]), label_ids)

    def predictions(self, outputs):
        return [{"prediction": float(value)} for value in outputs["value"]]


LABEL_TYPES = {"single": SingleLabel, "multi": MultiLabel, "regression": Number}


def label_type_of(settings, data_set, training_part, task_name):
    """Returns the type of the labels with its classes, an object of `LABEL_TYPES`.

    Args:
      settings: `ClassificationSettings`.
      data_set: `DataSet`.
      training_part: `Part` of the training data; None: the run's folder has the labels.
      task_name: the task in `task.json`.

    Raises:
      UserError: there are no labels, or they differ from those of the folder.
    """
    kind = LABEL_TYPES[settings.label_type]
    if kind is Number:
        return Number()
    separator = settings.label_separator
    wanted = list(settings.labels) or list(data_set.labels)
    if not wanted and training_part:
        wanted = _classes_in(training_part, kind, separator)
    path, stored = labels_of_run(settings.output_dir, task_name)
    if stored and wanted and stored != wanted:
        raise UserError(
            f"the classes are {_listed(wanted)}, but those of the run in {path} are "
            f"{_listed(stored)}; pass another --output_dir, or the data and --labels of that run"
        )
    labels = stored or wanted
    if not labels:
        raise UserError(f"the classes are unknown: there is no {path}; train, or pass --labels")
    _check(labels, settings)
    return kind(labels, separator)


def _classes_in(part, kind, separator):
    """Returns the labels of the training data, sorted; numbers are sorted by value."""
    found = set()
    for text in part.texts:
        with contextlib.suppress(ValueError):  # `pack` reports the row.
            found.update(kind.labels_in(text.label, separator))
    truths, numbers = found & {"true", "false"}, found & {"1", "0"}
    if truths and numbers:
        raise UserError(
            f"{', '.join(part.paths)}: labels are both {min(truths)} and {min(numbers)}, which may "
            "mean the same; write one of them"
        )
    try:
        return sorted(found, key=lambda label: (float(label), label))
    except ValueError:
        return sorted(found)


def _check(labels, settings):
    least = 2 if settings.label_type == "single" else 1
    if len(set(labels)) < max(least, len(labels)):
        raise UserError(
            f"the classes are {_listed(labels)}; there must be at least {least}, all different"
        )
    for label in labels:
        if label != " ".join(label.split()):
            raise UserError(
                f"label {label!r} has white space other than single spaces, which would break "
                "the tables of results; rename it"
            )


def _listed(labels):
    return ", ".join(labels[:10]) + (f" ... ({len(labels)})" if len(labels) > 10 else "")
