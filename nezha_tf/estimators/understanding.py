"""Classes that read: they classify texts, find entities, answer questions and choose answers."""

import json
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from nezha_tf.estimators.base import Estimator, checked, rows_of
from nezha_tf.tasks.classification.settings import ClassificationSettings
from nezha_tf.tasks.classification.task import Classification
from nezha_tf.tasks.finetuning.data_sets import CUSTOM
from nezha_tf.tasks.multiple_choice.settings import MultipleChoiceSettings
from nezha_tf.tasks.multiple_choice.task import MultipleChoiceTask
from nezha_tf.tasks.prompting.task import Prompting
from nezha_tf.tasks.reading_comprehension.settings import ReadingComprehensionSettings
from nezha_tf.tasks.reading_comprehension.task import ReadingComprehension
from nezha_tf.tasks.tagging.settings import TaggingSettings
from nezha_tf.tasks.tagging.task import NamedEntities
from nezha_tf.util.errors import UserError

# An entity of a text: its characters [start, end), and its label.
Entity = tuple[int, int, str]


class TextClassifier(Estimator):
    """Classifies texts, or pairs of texts: run_classifier.py for texts in memory.

    With `label_type="multi"` a text has any number of labels, a list; with "regression" a number.
    """

    task_names = ("classification", "prompting")
    settings_class = ClassificationSettings

    def __init__(
        self, preset: str | os.PathLike[str], labels: Sequence[str] | None = None, **settings: Any
    ):
        """Args:
        preset, settings: see `Estimator`.
        labels: the classes, in the order of the logits; default: those of the preset, if it was
          trained to classify, or of the texts of `fit`. What is no str becomes one.
        """
        super().__init__(preset, **settings)
        self._labels = None if labels is None else [str(label) for label in labels]
        theirs = self._opened.task.get("labels") if self.is_trained else None
        if self._labels is not None and theirs and list(theirs) != self._labels:
            raise UserError(
                f"{preset} was trained for the labels {', '.join(theirs)}, not for "
                f"{', '.join(self._labels)}: leave labels out, or name a model without this head"
            )

    @property
    def labels(self) -> list[str] | None:
        """The classes in the order of the logits; None: not known before `fit`."""
        if self.is_trained:
            return list(self._opened.task.get("labels", ()))
        return self._labels

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence,
        text_pairs: Sequence[str] | None = None,
        validation_data: tuple | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        verbose: bool = True,
        **settings: Any,
    ) -> Self:
        """Trains, and then answers with the best weights of the validation, or the last ones.

        Args:
          texts: list of str.
          labels: a label for each text, a list of them, or a number; see `label_type`.
          text_pairs: the second texts of pairs, or None.
          validation_data: (texts, labels) or (texts, labels, text_pairs) for an evaluation at the
            end of each epoch.
          output_dir: the run's folder; default: one that goes with this object.
          verbose: whether what the program prints is shown.
          **settings: flags of the program, such as `num_train_epochs=2`, `train_batch_size=16`,
            `learning_rate=3e-5`, `lora_rank=8` or `seed=1`.

        Returns:
          This object.

        Raises:
          UserError: texts or labels do not fit, or a setting is bad.
        """
        of_preset = self._opened.task.get("label_type", "single") if self.is_trained else "single"
        label_type = {"label_type": of_preset, **self._settings, **settings}["label_type"]
        given = {"task_name": CUSTOM, **settings, "label_type": label_type}
        if self.labels:
            given["labels"] = tuple(self.labels)
        if text_pairs is not None:
            given["text_pair_column"] = "text_pair"
        rows = self._rows(label_type, texts, labels, text_pairs)
        held_out = None if validation_data is None else self._rows(label_type, *validation_data)
        return self._fit(rows, held_out, output_dir, verbose, given)

    def predict(
        self,
        texts: Sequence[str],
        text_pairs: Sequence[str] | None = None,
        batch_size: int = 32,
    ) -> list:
        """Returns the label of each text, a str; or a list of labels, or a float."""
        answers = self._of_texts(texts, text_pairs, batch_size)
        if answers and "value" in answers[0]:
            return [answer["value"] for answer in answers]
        if answers and "labels_on" in answers[0]:
            return [
                [label for label, on in zip(self.labels, answer["labels_on"], strict=True) if on]
                for answer in answers
            ]
        return [answer["label"] for answer in answers]

    def predict_proba(
        self,
        texts: Sequence[str],
        text_pairs: Sequence[str] | None = None,
        batch_size: int = 32,
    ) -> np.ndarray:
        """Returns the probabilities, float32 [texts, labels], in the order of `labels`."""
        answers = self._of_texts(texts, text_pairs, batch_size)
        if answers and "probabilities" not in answers[0]:
            raise UserError("a model of numbers (label_type regression) has no probabilities")
        found = [answer["probabilities"] for answer in answers]
        return np.array(found, np.float32).reshape(len(answers), len(self.labels))

    def _make_task(self, settings):
        return (Prompting if settings.pattern else Classification)(settings)

    def _of_texts(self, texts, text_pairs, batch_size):
        self._require_trained()
        if self._opened.task["is_pair"] != (text_pairs is not None):
            form = "pairs: give text_pairs, too" if text_pairs is None else "single texts"
            raise UserError(f"{self._path} was trained for {form}")
        texts = {"text": checked(texts, "texts"), "text_pair": checked(text_pairs, "text_pairs")}
        return self._answers(batch_size, **{n: t for n, t in texts.items() if t is not None})

    def _rows(self, label_type, texts, labels, text_pairs=None):
        texts, text_pairs = checked(texts, "texts"), checked(text_pairs, "text_pairs")
        labels = [_plain_label(label, label_type, index) for index, label in enumerate(labels)]
        for index, label in enumerate(labels if self.labels else ()):
            for each in [label] if isinstance(label, str) else label:
                if each not in self.labels:
                    raise UserError(
                        f"labels[{index}] is {each!r}; the labels are {', '.join(self.labels)}"
                    )
        return rows_of(text=texts, text_pair=text_pairs, label=labels)


class TokenTagger(Estimator):
    """Finds entities in texts: run_ner.py for texts in memory."""

    task_names = ("tagging",)
    settings_class = TaggingSettings
    _make_task = staticmethod(NamedEntities)

    @property
    def labels(self) -> list[str]:
        """The tags of the tokens, in the order of the logits."""
        self._require_trained()
        return list(self._opened.task["labels"])

    def fit(
        self,
        texts: Sequence[str],
        entities: Sequence[Sequence[Entity]],
        validation_data: tuple | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        verbose: bool = True,
        **settings: Any,
    ) -> Self:
        """Trains; see `TextClassifier.fit`.

        `entities` are for each text a list of (start, end, label), the characters [start, end);
        `validation_data` are (texts, entities).
        """
        rows = _tagged(texts, entities)
        held_out = None if validation_data is None else _tagged(*validation_data)
        return self._fit(rows, held_out, output_dir, verbose, settings)

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> list[list[Entity]]:
        """Returns the entities of each text, a list of (start, end, label)."""
        self._require_trained()
        answers = self._answers(batch_size, text=checked(texts, "texts"))
        return [
            list(zip(*(found[name][: found["num_entities"]] for name in _ENTITY), strict=True))
            for found in answers
        ]


class QuestionAnswerer(Estimator):
    """Answers questions with a part of a passage: run_mrc.py for texts in memory."""

    task_names = ("reading_comprehension",)
    settings_class = ReadingComprehensionSettings
    _make_task = staticmethod(ReadingComprehension)

    def fit(
        self,
        questions: Sequence[str],
        passages: Sequence[str],
        answers: Sequence[str],
        validation_data: tuple | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        verbose: bool = True,
        **settings: Any,
    ) -> Self:
        """Trains; see `TextClassifier.fit`.

        `answers` stand in their passages, where the first place is meant; with
        `version_2_with_negative=True`, "" is a question without answer. `validation_data` are
        (questions, passages, answers).
        """
        rows = _questions(questions, passages, answers)
        held_out = None if validation_data is None else _questions(*validation_data)
        return self._fit(rows, held_out, output_dir, verbose, settings)

    def predict(
        self, questions: Sequence[str], passages: Sequence[str], batch_size: int = 32
    ) -> list[str]:
        """Returns the answer to each question; "" if there is none."""
        self._require_trained()
        texts = {"question": checked(questions, "questions")}
        texts["passage"] = checked(passages, "passages")
        return [found["answer"] for found in self._answers(batch_size, **texts)]

    def _written(self, rows, folder, part):
        path = os.path.join(folder, f"{part}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"data": [{"paragraphs": rows}]}, file, ensure_ascii=False)
        return path


class MultipleChoice(Estimator):
    """Chooses the answer to a question about a text: run_multiple_choice.py for texts in memory."""

    task_names = ("multiple_choice",)
    settings_class = MultipleChoiceSettings
    _make_task = staticmethod(MultipleChoiceTask)

    def fit(
        self,
        contexts: Sequence[str],
        questions: Sequence[str],
        choices: Sequence[Sequence[str]],
        answers: Sequence[str],
        validation_data: tuple | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        verbose: bool = True,
        **settings: Any,
    ) -> Self:
        """Trains; see `TextClassifier.fit`.

        Each answer is one of its choices; `validation_data` are (contexts, questions, choices,
        answers).
        """
        rows = _choices(contexts, questions, choices, answers)
        held_out = None if validation_data is None else _choices(*validation_data)
        given = {"task_name": CUSTOM, **settings}
        return self._fit(rows, held_out, output_dir, verbose, given)

    def predict(
        self,
        contexts: Sequence[str],
        questions: Sequence[str],
        choices: Sequence[Sequence[str]],
        batch_size: int = 8,
    ) -> list[str]:
        """Returns the most probable choice for each question."""
        self._require_trained()
        texts = {
            "context": checked(contexts, "contexts"),
            "question": checked(questions, "questions"),
            "choices": [checked(each, f"choices[{i}]") for i, each in enumerate(choices)],
        }
        return [found["choice"] for found in self._answers(batch_size, **texts)]


_ENTITY = ("start", "end", "label")


def _plain_label(label, label_type, index):
    """Returns a label as a file has it: numbers for regression, else str or a list of them."""
    if label_type == "multi":
        if isinstance(label, str) or not isinstance(label, Iterable):
            raise UserError(f'labels[{index}] is {label!r}: with label_type="multi" give lists')
        return [_plain_label(each, "single", index) for each in label]
    wanted = numbers.Real if label_type == "regression" else str | numbers.Integral | np.bool_
    if not isinstance(label, wanted):
        what = "a number" if label_type == "regression" else "a str or a whole number"
        raise UserError(f"labels[{index}] is {label!r}: give {what}")
    return float(label) if label_type == "regression" else str(label)


def _tagged(texts, entities):
    texts = checked(texts, "texts")
    rows = rows_of(text=texts, entities=entities)
    for number, row in enumerate(rows):
        for each in row["entities"] if isinstance(row["entities"], Iterable) else [row["entities"]]:
            if not isinstance(each, Sequence) or len(each) != len(_ENTITY):
                raise UserError(f"entities[{number}] has {each!r}: give (start, end, label)")
        row["entities"] = [dict(zip(_ENTITY, each, strict=True)) for each in row["entities"]]
    return rows


def _questions(questions, passages, answers):
    texts = {"question": checked(questions, "questions"), "context": checked(passages, "passages")}
    rows = rows_of(**texts, answer=checked(answers, "answers"))
    paragraphs = []
    for number, row in enumerate(rows):
        start = row["context"].find(row["answer"])
        if start < 0:
            raise UserError(f"answers[{number}], {row['answer']!r}, does not stand in its passage")
        found = [{"text": row["answer"], "answer_start": start}] if row["answer"] else []
        question = {"id": str(number), "question": row["question"], "answers": found}
        paragraphs.append({"context": row["context"], "qas": [question]})
    return paragraphs


def _choices(contexts, questions, choices, answers):
    rows = rows_of(
        context=checked(contexts, "contexts"),
        question=checked(questions, "questions"),
        choices=[checked(each, f"choices[{i}]") for i, each in enumerate(choices)],
        answer=checked(answers, "answers"),
    )
    for number, row in enumerate(rows):
        if row["answer"] not in row["choices"]:
            raise UserError(f"answers[{number}], {row['answer']!r}, is none of its choices")
    return rows
