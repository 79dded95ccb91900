"""Reads questions with choices: C3, ChID with its idioms, and the user's own rows."""

import json
import os
import re
from typing import NamedTuple

from nezha_tf.data.compression import unpacked_name
from nezha_tf.data.json_items import read_items
from nezha_tf.data.lines import BadRows, RowFault, require_text
from nezha_tf.data.rows import read_rows
from nezha_tf.util.errors import UserError

# A blank of ChID; FewCLUE's has no number.
BLANK = re.compile(r"#idiom\d*#")
ONE_BLANK = "#idiom#"
# What CLUE's program for ChID replaces in a passage, in this order.
CHID_PUNCTUATION = (
    *(("“", '"'), ("”", '"'), ("——", "--"), ("—", "-"), ("―", "-")),
    *(("…", "..."), ("‘", "'"), ("’", "'")),
)


class ChoiceQuestion(NamedTuple):
    """A question about a context, or a blank in a context, with its choices.

    Attributes:
      id: the question's name in the predictions, a str: its id in the file, the blank's mark in
        ChID, its number in C3 (from 0), the line of a row of the user's own.
      context: the text.
      choices: tuple of at least two texts.
      answer: index of the right choice, or None.
      place: file and line or number, for messages.
      text: the question; None: the context has a blank.
      blank: the mark in the context where the choice belongs; None: there is a question.
      group: name of the passages that share these choices; None: no other question has them.
    """

    id: str
    context: str
    choices: tuple[str, ...]
    answer: int | None
    place: str
    text: str | None = None
    blank: str | None = None
    group: str | None = None


class ChoiceColumns(NamedTuple):
    """The columns (or keys) of the user's own rows.

    Attributes:
      context, choices, answer: names of columns. The choices are a JSON list of texts.
      question: name of a column; None: each context has a blank, `ONE_BLANK`.
      answer_type: "text": the answer is one of the choices; "index": its number, from 0.
    """

    context: str
    question: str | None
    choices: str
    answer: str
    answer_type: str


def with_ascii_punctuation(passage):
    """Returns a passage as `read_chid` reads it."""
    for old, new in CHID_PUNCTUATION:
        passage = passage.replace(old, new)
    return passage


def read_c3(path, needs_answers=True, bad_rows=None):
    """Returns the questions of a file of C3 as a list of `ChoiceQuestion`.

    The lines of a text or dialogue are joined with line feeds, as in the original.

    Args:
      path: a JSON file: a list of [lines, [{"question", "choice", "answer"}], id]; the id may lack.
      needs_answers: whether each question must have an answer.
      bad_rows: `BadRows` that collects the faults of questions; None: the first is an error.

    Raises:
      UserError: the file is missing or has another format, or a question is faulty.
    """
    bad_rows, found, number = bad_rows or BadRows(), [], 0
    items = read_items(path, bad_rows)
    if not items.is_array:
        raise UserError(f'{path} is not a list of [lines, [{{"question": ...}}], id] as in C3')
    for item in items.values:
        try:
            context, entries = _parts_of_c3(item.value)
        except RowFault as fault:
            bad_rows.add(f"{path}, text {item.number}: {fault}")
            number += _num_entries(item.value)
            continue
        for of_text, entry in enumerate(entries, start=1):
            place = f"{path}, text {item.number}, question {of_text}"
            try:
                found.append(_question_of_c3(number, context, entry, needs_answers, place))
            except RowFault as fault:
                bad_rows.add(f"{place}: {fault}")
            number += 1
    return found


def read_chid(path, needs_answers=True, bad_rows=None):
    """Returns the blanks of a file of ChID as a list of `ChoiceQuestion`.

    Arguments and errors are those of `read_c3`. The file has JSON lines {"content": [passages],
    "candidates": [...]}, or FewCLUE's with one passage as text and the number of the right one as
    "answer". CLUE's answers are in a file beside it: those of `train.json` in `train_answer.json`.
    """
    bad_rows, found, answers = bad_rows or BadRows(), [], None
    columns = ("content", "candidates", "answer", "id")
    rows = read_rows(path, columns, columns[2:], json_columns=columns, bad_rows=bad_rows)
    for row in rows:
        if "answer" not in row.values and answers is None:
            answers = _answers_beside(path, needs_answers)
        try:
            found += _blanks(row, answers, needs_answers)
        except RowFault as fault:
            bad_rows.add(f"{row.place}: {fault}")
    return found


def read_own(path, columns, needs_answers=True, bad_rows=None):
    """Returns the questions of a file of rows with these `ChoiceColumns`; see `read_c3`."""
    bad_rows, found = bad_rows or BadRows(), []
    needed = [columns.context, columns.choices, *([columns.question] if columns.question else [])]
    optional = () if needs_answers else (columns.answer,)
    as_json = (columns.choices, columns.answer)
    rows = read_rows(path, (*needed, columns.answer), optional, (), as_json, bad_rows)
    for row in rows:
        try:
            found.append(_own_question(row, columns))
        except RowFault as fault:
            bad_rows.add(f"{row.place}: {fault}")
    return found


def _parts_of_c3(text):
    """Returns (context, list of questions)."""
    if isinstance(text, RowFault):
        raise text
    if not isinstance(text, list) or len(text) not in (2, 3) or not isinstance(text[1], list):
        raise RowFault('not [lines, [{"question": ...}], id]')
    lines = text[0]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise RowFault("the lines are not a list of texts")
    return require_text("\n".join(lines), "the text").strip(), text[1]


def _num_entries(text):
    """Returns the number of questions of a faulty text, so that those after it keep their ids."""
    is_listed = isinstance(text, list) and len(text) > 1 and isinstance(text[1], list)
    return len(text[1]) if is_listed else 0


def _question_of_c3(number, context, entry, needs_answers, place):
    if not isinstance(entry, dict):
        raise RowFault("not a JSON object")
    text = require_text(entry.get("question"), '"question"').strip()
    choices = _choices(entry.get("choice"), '"choice"')
    answer = entry.get("answer")
    answer = None if answer == "" else answer  # of a test set
    if answer is None and needs_answers:
        raise RowFault('"answer" is missing')
    if answer is not None:
        # Of equal choices the last, as `c3Processor` of nlpdata/c3 and CLUE's program have it; two
        # training questions have their right choice twice.
        answer = len(choices) - 1 - _index_of_text(choices[::-1], answer)
    given = entry.get("id")
    name = str(number if given is None else given)
    return ChoiceQuestion(name, context, choices, answer, place, text)


def _blanks(row, answers, needs_answers):
    passages, choices = _listed(row.values["content"]), row.values["candidates"]
    choices = _choices(_listed(choices), '"candidates"')
    found = []
    for passage in passages if isinstance(passages, list) else [passages]:
        passage = with_ascii_punctuation(require_text(passage, '"content"').strip())
        for mark in dict.fromkeys(BLANK.findall(passage)):
            answer = row.values.get("answer", (answers or {}).get(mark))
            if answer is None and needs_answers:
                raise RowFault(f"there is no answer for {mark}")
            index = None if answer is None else _index_of_number(choices, answer)
            # FewCLUE's blanks all have the same mark, but their rows have an id.
            name = row.values.get("id", str(row.line)) if mark == ONE_BLANK else mark
            found.append(
                ChoiceQuestion(
                    name, passage, choices, index, row.place, blank=mark, group=row.place
                )
            )
    if not found:
        raise RowFault('"content" has no blank such as #idiom000001# or #idiom#')
    return found


def _answers_beside(path, needs_answers):
    """Returns the answers of CLUE's ChID for a file: dict of a blank's mark to a number."""
    stem, ending = os.path.splitext(unpacked_name(path))
    beside = f"{stem}_answer{ending}"
    if not os.path.exists(beside):
        if not needs_answers:
            return {}
        raise UserError(f"{path} holds no answers, and there is no {beside}; fetch it as well")
    answers = [item.value for item in read_items(beside, BadRows()).values]
    if len(answers) != 1 or not isinstance(answers[0], dict):
        raise UserError(f'{beside} is not an object {{"#idiom000001#": number, ...}}')
    return answers[0]


def _own_question(row, columns):
    choices = _choices(_listed(row.values[columns.choices]), f'"{columns.choices}"')
    context, answer = row.values[columns.context], row.values.get(columns.answer)
    name = str(row.line)
    if answer is not None:
        is_text = columns.answer_type == "text"
        answer = (_index_of_text if is_text else _index_of_number)(choices, answer)
    if columns.question:
        text = row.values[columns.question]
        return ChoiceQuestion(name, context, choices, answer, row.place, text)
    if BLANK.findall(context).count(ONE_BLANK) != 1:
        raise RowFault(f'"{columns.context}" must have one blank {ONE_BLANK}')
    return ChoiceQuestion(name, context, choices, answer, row.place, blank=ONE_BLANK)


def _listed(text):
    """Returns the list of a text that is a JSON list; else the text."""
    if not text.startswith("["):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) else text


def _choices(values, name):
    if not isinstance(values, list) or len(values) < 2:
        raise RowFault(f"{name} is not a list of at least two choices")
    return tuple(require_text(value, f"a choice of {name}").strip() for value in values)


def _index_of_text(choices, answer):
    answer = answer.strip() if isinstance(answer, str) else answer
    if answer not in choices:
        raise RowFault(f"the answer {str(answer)[:40]!r} is none of the {len(choices)} choices")
    return choices.index(answer)


def _index_of_number(choices, answer):
    text = str(answer).strip()
    if isinstance(answer, bool) or not text.isascii() or not text.isdigit():
        raise RowFault(f"the answer {text[:40]!r} is not the number of a choice, from 0")
    # Python does not read numbers of thousands of digits.
    if len(text) > 9 or int(text) >= len(choices):
        raise RowFault(f"the answer {text[:20]} is not below {len(choices)}, the number of choices")
    return int(text)
