"""What every predictor has in common: a model that is asked about one text at a time."""

import abc
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.errors import UserError


class Classes(NamedTuple):
    """What a classifier says of a text: probabilities by label, or a number.

    Attributes:
      probabilities: dict of label to float; None of regression.
      predicted: list of labels.
      value: float; None of classes.
    """

    probabilities: dict | None
    predicted: list
    value: float | None = None


class Found(NamedTuple):
    """A stretch text[start:end] of a text, an entity or an answer, and its probability.

    The label of an answer is None, and so are the ends of no answer, whose text is "".
    """

    start: int | None
    end: int | None
    text: str
    probability: float
    label: str | None = None


class Predictor(abc.ABC):
    """A function from text to a result, by a model in this process.

    Attributes:
      ability: what it can do, by which the demo finds its tab: the name of the task that has it.
    """

    ability: str

    def __init__(self, folder, model):
        """Args:
        folder: `ModelFolder`.
        model: of `folder.make_model`.
        """
        self._tokenizer, self._model = folder.tokenizer, model

    @abc.abstractmethod
    def __call__(self, *texts):
        """Returns the result for one example; raises `UserError` where a text holds no piece."""

    def _ids(self, text, name):
        """Returns the ids of a text; raises `UserError` where there is none.

        Args:
          text: str, or None for an empty one.
          name: what it is, for the message.
        """
        ids = self._tokenizer.convert_tokens_to_ids(self._tokenizer.tokenize(text or ""))
        if not ids:
            raise UserError(f"{name} holds no piece; write something there")
        return ids

    def _outputs(self, ids, segment_ids, **others):
        """Returns the model's outputs for one example.

        Args:
          ids, segment_ids: int [T], [CLS] and [SEP] among them.
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
