"""The base of the classes that learn from texts in memory and answer them."""

import contextlib
import dataclasses
import difflib
import functools
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import keras
import tensorflow as tf

from nezha_tf.checkpoints.folder import ModelFolder, open_folder
from nezha_tf.serving.export import export_folder, serving_of
from nezha_tf.serving.signature import DEFAULT, plain
from nezha_tf.serving.tokenizer import texts_of
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.util import files
from nezha_tf.util.errors import UserError


class OpenedModel:
    """A preset and what is read of it: its tokenizer and its model.

    A preset is a folder, "mini", or the name of a model of a hub; see `nezha_tf.load`.
    """

    def __init__(self, preset: str | os.PathLike[str]):
        self._open(os.fspath(preset))

    @classmethod
    def from_preset(cls, preset: str | os.PathLike[str], **settings: Any) -> Self:
        """Opens a preset; the settings are those of the class.

        Raises:
          UserError: there is no such preset, or the class cannot use its model.
        """
        return cls(preset, **settings)

    def _open(self, path):
        opened = open_folder(path)
        opened.vocabulary  # noqa: B018 - that it is missing shows now, not after a training
        self._path, self._opened = path, opened
        for name in ("model", "_serving", "_function"):  # of the model that was there before
            self.__dict__.pop(name, None)

    @property
    def folder(self) -> ModelFolder:
        """The `ModelFolder` of the preset or, after `fit`, of the trained model."""
        return self._opened

    @property
    def tokenizer(self) -> FullTokenizer:
        return self._opened.tokenizer

    @functools.cached_property
    def model(self) -> keras.Model:
        """The Keras model, with its weights."""
        return self._opened.make_model()

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Writes a SavedModel that takes raw text into a new folder, as export_saved_model.py."""
        export_folder(self._path, os.fspath(folder))

    @functools.cached_property
    def _serving(self):
        return serving_of(self._opened)[1]

    @functools.cached_property
    def _function(self):
        return self._serving.signatures()[DEFAULT]

    def _answers(self, batch_size, **texts):
        """Returns the answers of the serving, a dict for each example, in their order.

        A batch holds texts of similar length. Each argument is a list of texts, or of lists.
        """
        count = _common_length(texts)
        order = sorted(range(count), key=lambda i: sum(map(_size, (t[i] for t in texts.values()))))
        function, answers = self._function, [None] * count
        for start in range(0, count, batch_size):
            rows = order[start : start + batch_size]
            given = {n: tf.constant(_filled([t[i] for i in rows])) for n, t in texts.items()}
            outputs = {name: plain(value) for name, value in function(**given).items()}
            for place, row in enumerate(rows):
                answers[row] = {name: values[place] for name, values in outputs.items()}
        return answers


class Estimator(OpenedModel):
    """A model of a task: `fit` trains it, and its other methods answer.

    `fit` writes its examples into a file and runs the task's program on it, so the numbers are the
    program's, and a folder of either opens in the other.

    Class attributes:
      task_names: the keys of `TASKS` whose models are trained for this.
      settings_class: the settings of the program.
      run: the function that runs it.
    """

    task_names: ClassVar[tuple[str, ...]]
    settings_class: ClassVar[type]
    run: ClassVar[Callable] = staticmethod(sweep.run)

    def __init__(self, preset: str | os.PathLike[str], **settings: Any):
        """Args:
        preset: see `OpenedModel`. A model that was trained for the task answers at once; of another
          the body is taken, and `fit` trains a new head.
        **settings: flags of the program for every `fit`, such as `max_seq_length=64`.
        """
        super().__init__(preset)
        self._settings = settings
        self._make_settings({})  # The names are checked before there is work.

    @property
    def is_trained(self) -> bool:
        """Whether the model was trained for the task."""
        return self._opened.task["task"] in self.task_names

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Copies the folder of the model; the copy must not be there yet."""
        self._require_trained()
        path = os.fspath(folder)
        if os.path.lexists(path):
            raise UserError(f"{path} exists already; name a new folder for the model")
        with files.whole_folder(path) as temporary:
            shutil.copytree(self._opened.path, temporary, dirs_exist_ok=True)

    def _make_task(self, settings):
        """Returns the task of the program."""
        raise NotImplementedError(f"{type(self).__name__} has no _make_task()")

    def _fit(self, rows, validation_rows, output_dir, verbose, settings):
        """Trains on rows, dicts for a file; the result is that of the public `fit`s."""
        if not rows or validation_rows == []:
            raise UserError("there are no examples; give at least one")
        scratch = None if output_dir else tempfile.TemporaryDirectory(prefix="nezha_tf_")
        with tempfile.TemporaryDirectory() as data:
            given = {
                "train_file": self._written(rows, data, "train"),
                "init_checkpoint": self._path,
                "output_dir": os.fspath(output_dir or scratch.name),
                "do_train": True,
            }
            if validation_rows is not None:
                given["eval_file"] = self._written(validation_rows, data, "eval")
                given["do_eval"] = True
            made = self._make_settings(settings, given)
            with _shown(verbose):
                self.run(made, self._make_task)
        self._open(made.output_dir)
        self._scratch = scratch  # That of an earlier `fit` is removed.
        return self

    def _written(self, rows, folder, part):
        """Writes the rows of a part as a file of the program; returns its path."""
        path = os.path.join(folder, f"{part}.jsonl")
        files.write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
        return path

    def _make_settings(self, settings, given=()):
        """Returns the program's settings: those of `fit` before those of the class."""
        names = {field.name for field in dataclasses.fields(self.settings_class)}
        both = {**self._settings, **settings}
        for name in both:
            if name not in names or name in given:
                near = difflib.get_close_matches(name, names, 1)
                raise UserError(
                    f"{name} is no setting of {type(self).__name__}"
                    + (f"; did you mean {near[0]}?" if near and name not in names else "")
                )
        if isinstance(both.get("learning_rate"), float):
            both["learning_rate"] = _as_flag(self.settings_class, both["learning_rate"])
        return self.settings_class(**both, **dict(given))

    def _require_trained(self):
        if not self.is_trained:
            raise UserError(
                f"{self._path} was not trained for this task: call fit() first, or name the folder "
                "of a trained model"
            )


@contextlib.contextmanager
def _shown(verbose):
    """Shows what a program prints, or nothing; what TensorFlow warns of does not help a user."""
    logger, level = tf.get_logger(), tf.get_logger().level
    logger.setLevel("ERROR")
    try:
        with contextlib.nullcontext() if verbose else contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)


def rows_of(**columns: Sequence) -> list[dict]:
    """Returns a dict for each example, from columns that have as many values; None: no column."""
    there = {name: values for name, values in columns.items() if values is not None}
    count = _common_length(there)
    return [{name: values[i] for name, values in there.items()} for i in range(count)]


def checked(texts, name):
    """Returns texts as a list of str, or None for None; see `texts_of`."""
    return None if texts is None else texts_of(texts, name)


def _common_length(columns):
    counts = {name: len(values) for name, values in columns.items()}
    if len(set(counts.values())) != 1:
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise UserError(f"there must be as many of each, but there are: {said}")
    return next(iter(counts.values()))


def _size(value):
    return len(value) if isinstance(value, str) else max(map(len, value), default=0)


def _filled(values):
    """Returns texts, or lists of texts that are made equally long with ""."""
    if all(isinstance(value, str) for value in values):
        return values
    width = max(map(len, values))
    return [[*value, *[""] * (width - len(value))] for value in values]


def _as_flag(settings_class, rate):
    """Returns a learning rate as the settings have it: fine-tuning tries several."""
    default = {field.name: field.default for field in dataclasses.fields(settings_class)}
    return (repr(rate),) if isinstance(default["learning_rate"], tuple) else rate
