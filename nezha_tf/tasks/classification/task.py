"""The task of `run_classifier.py`: classification and regression."""

import dataclasses
import functools

import numpy as np

from nezha_tf.tasks.classification import metrics
from nezha_tf.tasks.classification.data import pack, read_part
from nezha_tf.tasks.classification.data_sets import data_set_of
from nezha_tf.tasks.classification.labels import label_type_of
from nezha_tf.tasks.finetuning.data_sets import files_of
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.text.packing import pack_all, text_packing
from nezha_tf.util.errors import UserError


class Classification(FineTuning):
    """Fine-tuning on labelled texts or pairs of texts, with `ClassificationSettings`.

    Attributes:
      data_set: `DataSet`.
      label_type: an object of `LABEL_TYPES`.
    """

    task_name = "classification"
    # Whether the second text of a pair has segment ids 1.
    pairs_need_segments = True

    def __init__(self, settings):
        self.data_set = data_set_of(settings)
        self.label_type = None
        _check(settings)
        measured = metrics.OF_LABEL_TYPE[settings.label_type]
        best_metric = settings.best_metric or measured[0]
        super().__init__(dataclasses.replace(settings, best_metric=best_metric))
        self.notes.append(self._on_labels())

    def read(self, part):
        settings = self.settings
        if self.data_set.is_pair and self.pairs_need_segments:
            self.require_segments("pairs")
        pack_texts = functools.partial(pack_all, self.make_packing())
        paths = files_of(self.data_set, part, settings)
        found = read_part(self.data_set, part, paths, settings.skip_bad_rows)
        if self.label_type is None:
            training = found if part == "train" else None
            self.label_type = label_type_of(settings, self.data_set, training, self.task_name)
        examples, note = pack(found, self.reader.graph_tokenizer, pack_texts, self.label_type)
        self.notes.append(note)
        return examples

    def make_packing(self):
        """Returns the `Packing` of texts, or of pairs."""
        length, is_pair = self.settings.max_seq_length, self.data_set.is_pair
        return text_packing(self.tokenizer.vocabulary, length, is_pair)

    def task_file_settings(self):
        return {
            "task": self.task_name,
            "label_type": self.settings.label_type,
            "labels": list(self.label_type.labels),
            "is_pair": self.data_set.is_pair,
        }

    @property
    def num_labels(self):
        return self.label_type.num_outputs

    def make_objective(self, label_smoothing):
        return self.label_type.objective(label_smoothing)

    def measure(self, part, outputs):
        (count,) = {len(values) for values in outputs.values()}
        labels = dict(enumerate(self.examples[part].labels[:count]))
        labels = {index: label for index, label in labels.items() if label is not None}
        if not labels:
            return {}
        outputs = {name: [values[index] for index in labels] for name, values in outputs.items()}
        return self.label_type.measure(outputs, self.label_type.array([*labels.values()]))

    def report(self, outputs):
        if not self.label_type.has_one_class:
            return []
        labels, folder = self.label_type.labels, self.settings.output_dir
        predicted = self.label_type.predicted(outputs)
        label_ids = self.examples["eval"].arrays["label_ids"][: len(predicted)]
        matrix = metrics.confusion_matrix(label_ids, predicted, len(labels))
        lines = [metrics.write_table(folder, matrix, labels)]
        if self.settings.plot:
            lines.append(metrics.draw_matrix(folder, matrix, labels))
        return lines

    def write_predictions(self, outputs):
        examples = self.examples["predict"]
        found = self.label_type.predictions(outputs)
        names = ("id", "line", "text", "text_pair", "label")
        self.write_entries(
            [
                {**{name: getattr(text, name) for name in names}, **prediction}
                for text, prediction in zip(examples.rows, found, strict=True)
            ]
        )

    def _on_labels(self):
        labels = self.label_type.labels
        if not labels:
            return "labels are numbers"
        counts = ""
        if "train" in self.examples and self.label_type.has_one_class:
            ids = self.examples["train"].arrays["label_ids"]
            most = np.bincount(ids, minlength=len(labels)).max() / len(ids)
            counts = f"; the most frequent one is {most:.1%} of the training data"
        return f"{len(labels)} classes: {', '.join(labels[:20])}{counts}"


def _check(settings):
    """Raises a `UserError` if settings contradict one another."""
    choices = ("loss", *metrics.OF_LABEL_TYPE[settings.label_type])
    if settings.best_metric not in (None, *choices):
        raise UserError(
            f"--best_metric={settings.best_metric} is not measured with "
            f"--label_type={settings.label_type}; choose one of {', '.join(choices)}"
        )
    if settings.label_type == "regression" and settings.label_smoothing:
        raise UserError(
            "--label_smoothing needs classes; leave it out with --label_type=regression"
        )
    if settings.do_eval or settings.do_predict:
        metrics.require_libraries()
