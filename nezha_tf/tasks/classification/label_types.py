"""What a label is: one class, several classes, or a number; and all that follows from it."""

import json
import math

import numpy as np

from nezha_tf.data.rows import json_text
from nezha_tf.objectives import classification as objectives
from nezha_tf.tasks.classification import metrics

# A class of several that has at least this probability is predicted.
THRESHOLD = 0.5


class SingleLabel:
    """One class of several.

    Attributes:
      labels: names of the classes, L of them.
      num_outputs: numbers that the model puts out for an example.
      has_one_class: whether each example is of just one class.
      objective: the class of what is trained.
    """

    has_one_class = True
    objective = objectives.ClassificationLoss

    def __init__(self, labels, separator):
        """Args:
        labels: names of the classes.
        separator: parts the classes of an example, where it may have several.
        """
        self.labels = labels
        self.num_outputs = len(labels)
        self._separator = separator
        self._ids = {label: index for index, label in enumerate(labels)}

    @staticmethod
    def labels_in(text, separator):
        """Returns the names of classes in the text of a label; raises ValueError."""
        return [text]

    def encode(self, text):
        """Returns an example's `label_ids`, numbers, for the text of its label.

        Raises:
          ValueError: it is none; the message says why.
        """
        return self._id_of(text)

    def array(self, values):
        """Returns the `label_ids` [n, ...] of examples, each as of `encode`."""
        return np.array(values, np.int32)

    def measure(self, outputs, label_ids):
        """Returns dict of name to float.

        Args:
          outputs: dict of what the objective predicted of each example.
          label_ids: [n, ...].
        """
        return metrics.single(self.predicted(outputs), label_ids, self.labels)

    def predicted(self, outputs):
        """Returns the likeliest classes, int [n]."""
        return np.argmax(np.stack(outputs["probabilities"]), axis=-1)

    def predictions(self, outputs):
        """Returns a dict of what is written for each example."""
        return [
            {"prediction": self.labels[index], **self._probabilities(probabilities)}
            for index, probabilities in zip(
                self.predicted(outputs), outputs["probabilities"], strict=True
            )
        ]

    def _probabilities(self, probabilities):
        named = zip(self.labels, probabilities.tolist(), strict=True)
        return {"probabilities": dict(named)}

    def _id_of(self, label):
        if label not in self._ids:
            told = ", ".join(self.labels[:20]) + (", ..." if len(self.labels) > 20 else "")
            raise ValueError(f"label {label!r} is none of those of training ({told})")
        return self._ids[label]


class MultiLabel(SingleLabel):
    """Any of several classes; in a file parted by a separator, or a list in JSON."""

    has_one_class = False
    objective = objectives.MultiLabelLoss

    @staticmethod
    def labels_in(text, separator):
        if not text.startswith("["):
            return [name.strip() for name in text.split(separator) if name.strip()]
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"label {text[:40]!r} is no list in JSON ({error})") from error
        return [name.strip() if isinstance(name, str) else json_text(name) for name in names]

    def encode(self, text):
        row = [0] * len(self.labels)
        for name in self.labels_in(text, self._separator):
            row[self._id_of(name)] = 1
        return row

    def measure(self, outputs, label_ids):
        return metrics.multi(self.predicted(outputs), label_ids, self.labels)

    def predicted(self, outputs):
        """Returns which classes are predicted, 0 or 1, int [n, L]."""
        return (np.stack(outputs["probabilities"]) >= THRESHOLD).astype(np.int32)

    def predictions(self, outputs):
        return [
            {
                "prediction": [n for n, on in zip(self.labels, row, strict=True) if on],
                **self._probabilities(probabilities),
            }
            for row, probabilities in zip(
                self.predicted(outputs), outputs["probabilities"], strict=True
            )
        ]


class Number:
    """A number, as of regression; attributes and methods as above."""

    has_one_class = False
    objective = objectives.RegressionLoss
    labels = ()
    num_outputs = 1

    def encode(self, text):
        try:
            value = float(text)
        except ValueError as error:
            raise ValueError(f"label {text[:40]!r} is no number") from error
        if not math.isfinite(value):
            raise ValueError(f"label {text} is not finite")
        if abs(value) > float(np.finfo(np.float32).max):
            raise ValueError(f"label {text} is larger than a float32 can be; scale the labels")
        return value

    def array(self, values):
        return np.array(values, np.float32)

    def measure(self, outputs, label_ids):
        return metrics.regression(np.stack(outputs["value"]), label_ids)

    def predictions(self, outputs):
        return [{"prediction": float(value)} for value in outputs["value"]]


LABEL_TYPES = {"single": SingleLabel, "multi": MultiLabel, "regression": Number}
