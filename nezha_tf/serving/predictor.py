"""What all predictors have in common: a model in this process that answers one text at a time."""

import abc
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.util.errors import UserError


class Classes(NamedTuple):
    """The result of a classifier for one text: classes, or a number.

    Attributes:
      probabilities: dict of label to float; None for regression.
      predicted: list of the predicted labels; [] for regression.
      value: float, the number of regression; None for classes.
    """

    probabilities: dict | None
    predicted: list
    value: float | None = None


class Found(NamedTuple):
    """An entity or an answer: the part text[start:end] of a text, and its probability.

    An answer has no label: it is None. If there is no answer, `start` and `end` are None and
    `text` is "".
    """

    start: int | None
    end: int | None
    text: str
    probability: float
    label: str | None = None


class Predictor(abc.ABC):
    """A function from text to a result, computed by a model in this process.

    Attributes:
      ability: name of the task that it does; the demo chooses the tab by it.
    """

    ability: str

    def __init__(self, folder, model):
        """Args:
        folder: `ModelFolder`.
        model: as returned by `folder.make_model`.
        """
        self._tokenizer, self._model = folder.tokenizer, model

    @abc.abstractmethod
    def __call__(self, *texts):
        """Returns the result for one example; raises `UserError` if a text has no token."""

    def _ids(self, text, name):
        """Returns the ids of a text, a list of int; raises `UserError` if there are none.

        Args:
          text: str, or None for an empty text.
          name: what the text is ("the question"), for the message.
        """
        ids = self._tokenizer.convert_tokens_to_ids(self._tokenizer.tokenize(text or ""))
        if not ids:
            raise UserError(f"{name} holds no token; write something there")
        return ids

    def _outputs(self, ids, segment_ids, **others):
        """Returns the model's outputs for one example.

        Args:
          ids, segment_ids: lists of T ints, [CLS] and [SEP] included.
          **others: further inputs, [1, ...].
        """
        return self._model(
            {
                "input_ids": tf.constant([ids], tf.int32),
                "input_mask": tf.ones((1, len(ids)), tf.int32),
                "segment_ids": tf.constant([segment_ids], tf.int32),
                **{name: tf.constant(values) for name, values in others.items()},
            },
            training=False,
        )
