"""Chooses one of several texts: the answer to a question, or what belongs in a blank."""

import tensorflow as tf

from nezha_tf.data.choices import BLANK, ONE_BLANK, with_ascii_punctuation
from nezha_tf.serving.predictor import Classes, Predictor
from nezha_tf.tasks.multiple_choice.examples import around_blank
from nezha_tf.tasks.multiple_choice.loss import MultipleChoiceLoss
from nezha_tf.tasks.multiple_choice.packing import BlankPacking, QuestionPacking
from nezha_tf.util.errors import UserError

NO_BLANK = f"the text has no blank; write {ONE_BLANK} where a choice belongs"


class ChoiceFinder(Predictor):
    """Returns the `Classes` whose labels are the choices.

    Attributes:
      has_blanks: whether a text has a blank (`ONE_BLANK`) and there is no question.
    """

    ability = "multiple_choice"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        self.has_blanks = folder.task["has_blanks"]
        self._is_ascii = folder.task.get("ascii_punctuation", False)
        packing = BlankPacking if self.has_blanks else QuestionPacking
        self._packing = packing(folder.tokenizer.vocabulary, folder.task["max_seq_length"])
        self._predictions = MultipleChoiceLoss().predictions

    def __call__(self, context, question, choices):
        """Args:
          context: the text.
          question: the question; with `has_blanks` it is not read.
          choices: list of at least two different texts.

        Raises:
          UserError: a text has no token, there are not two different choices, or no blank.
        """
        texts = checked_choices(choices)
        if self.has_blanks:
            sides = self._sides(context)
        else:
            sides = self._ids(context, "the text"), self._ids(question, "the question")
        packed = [self._packing(*sides, self._ids(text, "a choice")) for text in texts]
        length = max(len(ids) for ids, _ in packed)
        names = ("input_ids", "segment_ids")
        inputs = {n: _padded([row[i] for row in packed], length) for i, n in enumerate(names)}
        inputs["input_mask"] = _padded([[1] * len(ids) for ids, _ in packed], length)
        found = self._predictions(self._model(inputs, training=False))
        probabilities = found["probabilities"][0].numpy()
        return choice_classes(texts, probabilities)

    def _sides(self, context):
        """Returns the ids in front of the blank and behind it; either may be empty."""
        tokenizer, context = self._tokenizer, context or ""
        context = with_ascii_punctuation(context) if self._is_ascii else context
        if ONE_BLANK not in BLANK.findall(context):
            raise UserError(NO_BLANK)
        return around_blank(
            context,
            ONE_BLANK,
            lambda text: tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)),
        )


def checked_choices(choices):
    """Returns the choices that are not empty; raises `UserError` unless two or more differ."""
    texts = [text.strip() for text in choices if text.strip()]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise UserError("write at least two choices, all different")
    return texts


def choice_classes(choices, probabilities):
    """Returns the `Classes` of choices, a list of C texts, with probabilities [C]."""
    by_choice = dict(zip(choices, map(float, probabilities), strict=True))
    return Classes(by_choice, [max(by_choice, key=by_choice.get)])


def _padded(rows, length):
    """Returns rows of ints as an int32 tensor [1, C, length]."""
    return tf.constant([[[*row, *[0] * (length - len(row))] for row in rows]], tf.int32)
