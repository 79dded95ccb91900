"""The data sets known by name, with their files; and the user's own."""

from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data.choices import ChoiceColumns, read_c3, read_chid, read_own
from nezha_tf.tasks.finetuning.data_sets import CLUE_FILES, CUSTOM, require_different
from nezha_tf.util.errors import require_flag


class ChoiceDataSet(NamedTuple):
    """A data set.

    Attributes:
      read: function of a path, `needs_answers` and `bad_rows`; returns a list of `ChoiceQuestion`.
      has_blanks: whether its contexts have blanks instead of questions.
      files: {"train", "eval" or "predict": the choices of its files}; see `found_in`.
      ascii_punctuation: whether contexts are read by `with_ascii_punctuation`.
    """

    read: Callable
    has_blanks: bool
    files: dict
    ascii_punctuation: bool = False


def _of_c3(part):
    # The names in which C3 is spread (m: mixed genre, d: dialogue), and those of CLUE's archive.
    return (f"c3-m-{part}.json", f"c3-d-{part}.json"), (f"m-{part}.json", f"d-{part}.json")


DATA_SETS = {
    "c3": ChoiceDataSet(
        read_c3,
        False,
        {
            "train": _of_c3("train"),
            "eval": _of_c3("dev"),
            "predict": (*_of_c3("test"), *CLUE_FILES["predict"]),
        },
    ),
    "chid": ChoiceDataSet(read_chid, True, CLUE_FILES, ascii_punctuation=True),
}
NAMES = (*DATA_SETS, CUSTOM)
_COLUMNS = ("context_column", "question_column", "choices_column", "answer_column")


def data_set_of(settings):
    """Returns the `ChoiceDataSet` of `MultipleChoiceSettings`.

    Raises:
      UserError: two flags name the same column.
    """
    name = require_flag(settings.task_name, "task_name")
    if name != CUSTOM:
        return DATA_SETS[name]
    context, question, choices, answer = require_different(settings, *_COLUMNS)
    columns = ChoiceColumns(context, question or None, choices, answer, settings.answer_type)

    def read(path, needs_answers, bad_rows):
        return read_own(path, columns, needs_answers, bad_rows)

    return ChoiceDataSet(read, not question, {})
