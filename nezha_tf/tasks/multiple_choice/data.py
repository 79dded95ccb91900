"""The data sets known by name and the user's own, and their questions as a model's examples."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nezha_tf.data.choices import BLANK, Columns, read_c3, read_chid, read_own
from nezha_tf.tasks.finetuning.data_sets import CLUE_TESTS, CUSTOM, refuse_flags_of_custom
from nezha_tf.tasks.finetuning.task import Examples
from nezha_tf.tasks.multiple_choice.packing import OTHER_BLANK, BlankPacking, QuestionPacking
from nezha_tf.util import console
from nezha_tf.util.errors import UserError, require_flag


class DataSet(NamedTuple):
    """A data set.

    Attributes:
      read: function of a path, `needs_answers` and `bad_rows`; returns a list of `Question`.
      has_blanks: whether its contexts have blanks instead of questions.
      parts: {"train", "eval" or "predict": tuple of tuples of file names}; see `found_in`.
      ascii_punctuation: whether contexts are read by `with_ascii_punctuation`.
    """

    read: Callable
    has_blanks: bool
    parts: dict
    ascii_punctuation: bool = False

    def file_choices(self, part):
        """Returns the names of a part's files; see `found_in`."""
        return self.parts.get(part, ())


def _of_c3(part):
    # The names in which C3 is spread (m: mixed genre, d: dialogue), and those of CLUE's archive.
    return (f"c3-m-{part}.json", f"c3-d-{part}.json"), (f"m-{part}.json", f"d-{part}.json")


_TESTS = (*CLUE_TESTS, "test_public.json")
DATA_SETS = {
    "c3": DataSet(
        read_c3,
        False,
        {
            "train": _of_c3("train"),
            "eval": _of_c3("dev"),
            "predict": (*_of_c3("test"), *((name,) for name in _TESTS)),
        },
    ),
    "chid": DataSet(
        read_chid,
        True,
        {
            "train": (("train.json",), ("train_few_all.json",), ("train_0.json",)),
            "eval": (("dev.json",), ("dev_few_all.json",), ("dev_0.json",)),
            "predict": tuple((name,) for name in _TESTS),
        },
        ascii_punctuation=True,
    ),
}
NAMES = (*DATA_SETS, CUSTOM)
_COLUMNS = ("context_column", "question_column", "choices_column", "answer_column")


def data_set_of(settings):
    """Returns the `DataSet` of the settings.

    Args:
      settings: `MultipleChoiceSettings`.

    Raises:
      UserError: columns are given for a data set known by name, or two flags name the same column.
    """
    name = require_flag(settings.task_name, "task_name")
    if name != CUSTOM:
        refuse_flags_of_custom(settings, (*_COLUMNS, "answer_type"))
        return DATA_SETS[name]
    wanted = [getattr(settings, flag) for flag in _COLUMNS]
    if len(set(wanted)) < len(wanted):
        named = ", ".join(f"--{flag}" for flag in _COLUMNS)
        raise UserError(f"{named} are {wanted}; name another column for each")
    context, question, choices, answer = wanted
    columns = Columns(context, question or None, choices, answer, settings.answer_type)

    def read(path, needs_answers, bad_rows):
        return read_own(path, columns, needs_answers, bad_rows)

    return DataSet(read, not question, {})


class Packer:
    """Packs questions, all with a question or all with a blank."""

    def __init__(self, graph_tokenizer, vocabulary, max_seq_length, has_blanks):
        """Args:
          graph_tokenizer: `GraphTokenizer`.
          vocabulary: `Vocabulary`.
          max_seq_length: most tokens of a sequence.
          has_blanks: whether contexts have blanks instead of questions.

        Raises:
          UserError: `max_seq_length` is too small.
        """
        self._tokenizer = graph_tokenizer
        self._has_blanks = has_blanks
        packing = BlankPacking if has_blanks else QuestionPacking
        self._packing = packing(vocabulary, max_seq_length)

    def __call__(self, questions, paths, bad_rows):
        """Returns (the `Examples` of a list of `Question`, a line on them).

        Args:
          questions: list of `Question`.
          paths: their files, for messages.
          bad_rows: `BadRows`, which collects questions with a text that has no token.

        Raises:
          UserError: such a question, unless these are skipped; or no question is left.
        """
        questions, sequences = self._packed(questions, bad_rows)
        named = ", ".join(paths)
        if not questions:
            raise UserError(f"{named}: no question{bad_rows.note()}")
        most = max(map(len, sequences))
        empty = np.zeros(0, np.int32)
        filled = [[*rows, *[(empty, empty)] * (most - len(rows))] for rows in sequences]
        names = ("input_ids", "segment_ids")
        arrays = {n: [[row[i] for row in rows] for rows in filled] for i, n in enumerate(names)}
        answers = [question.answer for question in questions]
        if None not in answers:
            arrays["label_ids"] = np.array(answers, np.int32)
        return Examples(questions, arrays, answers), self._note(named, sequences) + bad_rows.note()

    def _packed(self, questions, bad_rows):
        """Returns (the usable questions, for each the list of its packed sequences)."""
        texts = {text for question in questions for text in self._texts(question)}
        texts = sorted(texts)
        ids = dict(zip(texts, self._tokenizer.ids_of(texts), strict=True)) if texts else {}
        kept, packed = [], []
        for question in questions:
            empty = self._empty(question, ids)
            if empty:
                bad_rows.add(f"{question.place}: {empty} has no tokens; write a text")
                continue
            context = self._context(question, ids)
            kept.append(question)
            packed.append([self._packing(*context, ids[choice]) for choice in question.choices])
        return kept, packed

    def _texts(self, question):
        """Yields the texts of a question that are tokenized."""
        if self._has_blanks:
            yield from BLANK.split(question.context)
        else:
            yield from (question.context, question.text)
        yield from question.choices

    def _empty(self, question, ids):
        """Returns which text has no token, or None; what is around a blank may be empty."""
        if any(not len(ids[choice]) for choice in question.choices):
            return "a choice"
        if self._has_blanks:
            return None
        named = {"the text": question.context, "the question": question.text}
        return next((name for name, text in named.items() if not len(ids[text])), None)

    def _context(self, question, ids):
        """Returns the ids that the packing takes before those of the choice: two lists."""
        if not self._has_blanks:
            return ids[question.context], ids[question.text]
        return around_blank(question.context, question.blank, ids.__getitem__)

    def _note(self, named, sequences):
        count, cut = len(sequences), self._packing.num_truncated
        numbers = sorted({len(rows) for rows in sequences})
        told = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        line = f"{named}: {console.plural(count, 'question')} with {told} choices"
        self._packing.num_truncated = 0
        return line + (f"; too long, so truncated: {cut:,} choices" if cut else "")


def around_blank(context, mark, ids_of):
    """Returns the ids before and after the first blank with a mark: two lists of int.

    Args:
      context: a text with this blank.
      mark: as of `Question.blank`; other blanks become `OTHER_BLANK`.
      ids_of: function of a text that returns its ids.
    """
    marks, texts = BLANK.findall(context), BLANK.split(context)
    at = marks.index(mark)
    return _joined(texts[: at + 1], ids_of), _joined(texts[at + 1 :], ids_of)


def _joined(texts, ids_of):
    """Returns the ids of texts with another blank between each two, a list of int."""
    joined = list(ids_of(texts[0]))
    for text in texts[1:]:
        joined += [OTHER_BLANK, *ids_of(text)]
    return joined
