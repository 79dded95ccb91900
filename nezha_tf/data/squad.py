"""Reads reading comprehension data in the format of SQuAD 1.1 and 2.0 and CMRC2018."""

import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.errors import UserError


class Answer(NamedTuple):
    """The text of an answer and its place in the passage.

    Attributes:
      text: str.
      start: place of its first character in the passage; None: the passage does not contain it.
      is_moved: whether `start` differs from the place in the file.
    """

    text: str
    start: int | None
    is_moved: bool = False


class Question(NamedTuple):
    """A question about a passage.

    Attributes:
      id: the question's unique id, a str.
      context: the passage.
      text: the question.
      answers: one `Answer` of each annotator; () if it is impossible or has none.
      is_impossible: whether the file says that the passage does not answer the question.
      path: its file.
    """

    id: str
    context: str
    text: str
    answers: tuple[Answer, ...]
    is_impossible: bool = False
    path: str = ""

    @property
    def place(self):
        """File and question id, for messages."""
        return f"{self.path}, question {' '.join(self.id.split())}"

    @property
    def is_labelled(self):
        """Whether the file answers it; test files may have placeholders that are in no passage."""
        return self.is_impossible or any(answer.start is not None for answer in self.answers)


def read_questions(paths, with_impossible=False, needs_answers=True, bad_rows=None):
    """Returns the questions of files as a list of `Question`.

    If an answer is not at the place that the file says, the nearest occurrence in the passage is
    taken. The passage must contain the first answer. The other answers are only compared with
    predictions, and a few in CMRC2018 are not in their passage.

    Args:
      paths: list of JSON files.
      with_impossible: whether questions may be marked as impossible (SQuAD 2.0).
      needs_answers: whether a question must be labelled and its first answer be in the passage.
        If not, what is no answer, as the placeholders of test files, is passed over.
      bad_rows: `BadRows` that collects the faults of questions; None: the first is an error.

    Raises:
      UserError: a file is missing or has another format, a question is faulty, or there is no
        question.
    """
    questions, ids, bad_rows = [], set(), bad_rows or BadRows()
    for path in paths:
        for number, (paragraph, entry) in enumerate(_entries(path), start=1):
            try:
                question = _question(path, paragraph, entry, with_impossible, needs_answers)
                if question.id in ids:
                    raise _Fault("its id is used twice; give each question its own id")
            except _Fault as fault:
                name = entry.get("id") if isinstance(entry, dict) else None
                is_name = isinstance(name, str) and name and name.isprintable()
                name = name if is_name else f"number {number}"
                bad_rows.add(f"{path}, question {name}: {fault}")
            else:
                ids.add(question.id)
                questions.append(question)
    if not questions:
        why = f" is valid; the first fault: {bad_rows.first}" if bad_rows.count else " found"
        raise UserError(f"{', '.join(paths)}: no question{why}")
    return questions


class _Fault(Exception):
    """An error in a question."""


def _entries(path):
    """Returns a list of (paragraph, question), JSON objects in the file's order."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            data = json.load(file)["data"]
        return [
            (paragraph, entry)
            for article in data
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        ]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON in UTF-8: {error}") from error
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{path} does not have SQuAD's format ({error!r}): "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
        ) from error


def _question(path, paragraph, entry, with_impossible, needs_answers):
    if not isinstance(entry, dict):
        raise _Fault("it is not a JSON object")
    name, context = _text(entry, "id"), _text(paragraph, "context")
    text, is_impossible = _text(entry, "question"), entry.get("is_impossible", False)
    if not isinstance(is_impossible, bool):
        raise _Fault('"is_impossible" is neither true nor false')
    if is_impossible and not with_impossible:
        raise _Fault("it is impossible; only run_mrc.py --version_2_with_negative accepts this")
    answers = () if is_impossible else _answers(context, entry.get("answers"), needs_answers)
    if needs_answers and not is_impossible:
        if not answers:
            raise _Fault('"answers" is empty')
        if answers[0].start is None:
            raise _Fault(f"the answer {answers[0].text!r} is not in its passage; correct it")
    return Question(name, context, text, answers, is_impossible, path)


def _answers(context, given, are_needed):
    """Returns a tuple of `Answer`; what is none is a `_Fault` only if answers are needed."""
    if not isinstance(given, list):
        if are_needed:
            raise _Fault('"answers" is missing or not a list')
        return ()
    found = []
    for answer in given:
        try:
            found.append(_answer(context, answer))
        except _Fault:
            if are_needed:
                raise
    return tuple(found)


def _answer(context, answer):
    if not isinstance(answer, dict):
        raise _Fault("an answer is not a JSON object")
    text, start = _text(answer, "text"), answer.get("answer_start")
    if type(start) is not int:
        raise _Fault('"answer_start" is missing or not a whole number')
    place = _nearest(context, text, start)
    return Answer(text, place, place not in (None, start))


def _nearest(context, text, start):
    """Returns the place of a text in a passage that is nearest to `start`, or None."""
    places, place = [], context.find(text)
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return min(places, key=lambda place: abs(place - start), default=None)


def _text(values, name):
    value = values.get(name)
    if not isinstance(value, str):
        raise _Fault(f'"{name}" is missing or not a string')
    if not value.strip():
        raise _Fault(f'"{name}" is empty')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f'"{name}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value
