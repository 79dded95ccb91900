"""Reading comprehension data in the form of SQuAD 1.1 and 2.0, as CMRC2018 has it too."""

import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.errors import UserError


class Answer(NamedTuple):
    """A text and where it stands in the passage.

    Attributes:
      text: str.
      start: its first character there; None where it does not stand there.
      is_moved: whether the file says another place.
    """

    text: str
    start: int | None
    is_moved: bool = False


class Question(NamedTuple):
    """A question on a passage.

    Attributes:
      id: names it.
      context: the passage.
      text: the question.
      answers: of each annotator one `Answer`; none where it is impossible or not labelled.
      is_impossible: whether it is known that the passage does not answer it.
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
        """File and question, for a message."""
        return f"{self.path}, question {' '.join(self.id.split())}"

    @property
    def is_labelled(self):
        return bool(self.answers) or self.is_impossible


def read_questions(paths, with_impossible=False, needs_answers=True, bad_rows=None):
    """Returns the questions of files as a list of `Question`.

    An answer that does not stand where the file says is looked for in the passage, the nearest
    place first. The first answer must stand there; others, which are only compared with, need
    not (CMRC2018 has some).

    Args:
      paths: list of JSON files.
      with_impossible: whether questions may have no answer, and say so (SQuAD 2.0).
      needs_answers: whether a question must be labelled, and its first answer be found.
      bad_rows: `BadRows` that takes the faults of questions; None: the first one is an error.

    Raises:
      UserError: a file is missing or is no such data, a faulty question, or no question at all.
    """
    questions, ids, bad_rows = [], set(), bad_rows or BadRows()
    for path in paths:
        for number, (paragraph, entry) in enumerate(_entries(path), start=1):
            try:
                question = _question(path, paragraph, entry, with_impossible, needs_answers)
                if question.id in ids:
                    raise _Fault("there are two of this id; give each its own")
            except _Fault as fault:
                name = entry.get("id") if isinstance(entry, dict) else None
                is_name = isinstance(name, str) and name and name.isprintable()
                name = name if is_name else f"number {number}"
                bad_rows.add(f"{path}, question {name}: {fault}")
            else:
                ids.add(question.id)
                questions.append(question)
    if not questions:
        why = f" that is sound; the first: {bad_rows.first}" if bad_rows.count else " in it"
        raise UserError(f"{', '.join(paths)}: no question{why}")
    return questions


class _Fault(Exception):
    """What is wrong with a question."""


def _entries(path):
    """Returns (paragraph, question) as the file has them, in its order."""
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
            f"{path} has not SQuAD's form ({error!r}): "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
        ) from error


def _question(path, paragraph, entry, with_impossible, needs_answers):
    if not isinstance(entry, dict):
        raise _Fault("no JSON object")
    name, context = _text(entry, "id"), _text(paragraph, "context")
    text, is_impossible = _text(entry, "question"), entry.get("is_impossible", False)
    if not isinstance(is_impossible, bool):
        raise _Fault('"is_impossible" is neither true nor false')
    if is_impossible and not with_impossible:
        raise _Fault("it has no answer; only run_mrc.py --version_2_with_negative takes such ones")
    found = [] if is_impossible else entry.get("answers", None if needs_answers else [])
    if not isinstance(found, list):
        raise _Fault('"answers" is missing, or no list')
    answers = tuple(_answer(context, answer) for answer in found)
    if needs_answers and not is_impossible:
        if not answers:
            raise _Fault('"answers" is empty')
        if answers[0].start is None:
            raise _Fault(f"the answer {answers[0].text!r} is not in its passage; correct it")
    return Question(name, context, text, answers, is_impossible, path)


def _answer(context, answer):
    if not isinstance(answer, dict):
        raise _Fault("an answer is no JSON object")
    text, start = _text(answer, "text"), answer.get("answer_start")
    if type(start) is not int:
        raise _Fault('"answer_start" is missing, or no whole number')
    place = _nearest(context, text, start)
    return Answer(text, place, place not in (None, start))


def _nearest(context, text, start):
    """Returns where a text stands in a passage, the place nearest to `start`, or None."""
    places, place = [], context.find(text)
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return min(places, key=lambda place: abs(place - start), default=None)


def _text(values, name):
    value = values.get(name)
    if not isinstance(value, str):
        raise _Fault(f'"{name}" is missing, or no text')
    if not value.strip():
        raise _Fault(f'"{name}" is empty')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f'"{name}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value
