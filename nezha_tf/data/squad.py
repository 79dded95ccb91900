"""Reads questions about passages, with their answers, in the JSON forms of several data sets."""

from typing import NamedTuple

from nezha_tf.data.json_items import read_items
from nezha_tf.data.lines import BadRows, RowFault, require_text
from nezha_tf.util.errors import UserError


class Answer(NamedTuple):
    """The text of an answer and its place in the passage.

    Attributes:
      text: str.
      start: place of its first character; None: the passage does not contain it.
      is_moved: whether `start` differs from the place in the file.
      is_searched: whether the file has no place, and `start` is the first in the passage.
    """

    text: str
    start: int | None
    is_moved: bool = False
    is_searched: bool = False


class Question(NamedTuple):
    """A question about a passage.

    Attributes:
      id: the question's unique id, a str or an int, as the file has it.
      context: the passage.
      text: the question.
      answers: one `Answer` of each annotator; () if it is impossible or has none.
      is_impossible: whether the file says that the passage does not answer the question.
      path: its file.
    """

    id: str | int
    context: str
    text: str
    answers: tuple[Answer, ...]
    is_impossible: bool = False
    path: str = ""

    @property
    def place(self):
        """File and question id, for messages."""
        return f"{self.path}, question {' '.join(str(self.id).split())}"

    @property
    def is_labelled(self):
        """Whether the file answers it; test files may have placeholders that are in no passage."""
        return self.is_impossible or any(answer.start is not None for answer in self.answers)


def read_questions(paths, with_impossible=False, needs_answers=True, bad_rows=None):
    """Returns the questions of files as a list of `Question`.

    If an answer is not at the place that the file says, the nearest occurrence in the passage is
    taken; if the file says none, the first one. The passage must contain the first answer. The
    other answers are only compared with predictions, and a few in CMRC2018 are not in their
    passage.

    Args:
      paths: list of JSON files (or `.gz`): SQuAD's object, an array, or an object on each line; see
        `FORMS`.
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
        for number, entry in enumerate(_entries_of(path, bad_rows), start=1):
            try:
                question = _question(path, entry, with_impossible, needs_answers)
                # 7 and "7" are the same name in a JSON object of predictions.
                if str(question.id) in ids:
                    raise RowFault("its id is used twice; give each question its own id")
            except RowFault as fault:
                bad_rows.add(f"{path}, question {_shown(entry.id, number)}: {fault}")
            else:
                ids.add(str(question.id))
                questions.append(question)
    if not questions:
        why = f" is valid; the first fault: {bad_rows.first}" if bad_rows.count else " found"
        raise UserError(f"{', '.join(paths)}: no question{why}")
    return questions


class Entry(NamedTuple):
    """A question as a file has it; every part may be of any type.

    Attributes:
      id, context, question, answers, is_impossible: the values of SQuAD's keys; None: there is
        none. The answers are a list of {"text", "answer_start"} or of texts.
      lacks_answers: whether the form marks a question without an answer by an empty list.
      fault: why the question cannot be read; "": it can.
    """

    id: object = None
    context: object = None
    question: object = None
    answers: object = None
    is_impossible: object = None
    lacks_answers: bool = False
    fault: str = ""


def _entries_of(path, bad_rows):
    """Yields the `Entry`s of a file; lines that are not JSON are faults of `bad_rows`."""
    for item in read_items(path, bad_rows).values:
        if isinstance(item.value, RowFault):
            bad_rows.add(f"{path}, {item.place}: {item.value}")
            continue
        try:
            is_whole = isinstance(item.value, dict) and "data" in item.value
            for part in list(item.value["data"]) if is_whole else [item.value]:
                yield from _entries(part)
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{path}, {item.place} does not have SQuAD's format ({error!r}): "
                '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
            ) from error


def _entries(value):
    """Returns the `Entry`s of a value of the first of `FORMS` that fits."""
    for names, read in FORMS.items():
        if isinstance(value, dict) and all(name in value for name in names):
            return read(value)
    raise TypeError("no passage with questions")


def _article(value):
    """SQuAD's: {"paragraphs": [{"context":, "qas": [...]}]}."""
    return [entry for part in value["paragraphs"] for entry in _paragraph(part)]


def _paragraph(value):
    return [_of_squad(entry, value.get("context")) for entry in list(value["qas"])]


def _of_squad(entry, context, question="question"):
    if not isinstance(entry, dict):
        return Entry(fault="it is not a JSON object")
    # MRQA and SQuAD's derivatives have `qid`, CMRC2018 has `query_id`.
    name = next((entry[name] for name in ("id", "qid", "query_id") if name in entry), None)
    return Entry(name, context, *map(entry.get, (question, "answers", "is_impossible")))


def _original_cmrc(value):
    """CMRC2018's own: {"context_text":, "qas": [{"query_id":, "query_text":, "answers": []}]}."""
    return [_of_squad(entry, value["context_text"], "query_text") for entry in list(value["qas"])]


def _flat(value):
    """Hugging Face's: "id", "context", "question", "answers": {"text": [], "answer_start": []}."""
    answers, fault = value.get("answers"), ""
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start")
        texts = [texts] if isinstance(texts, str) else texts
        starts = starts if isinstance(starts, list) else [starts]
        starts = [None] * len(texts) if isinstance(texts, list) and starts == [None] else starts
        if not isinstance(texts, list) or len(texts) != len(starts):
            fault = '"answers" has not as many texts as places'
        else:
            pairs = zip(texts, starts, strict=True)
            answers = [{"text": text, "answer_start": start} for text, start in pairs]
    given = map(value.get, ("id", "context", "question"))
    return [Entry(*given, answers, value.get("is_impossible"), answers == [], fault)]


def _dureader(value):
    """DuReader 2.0 after its `utils/preprocess.py`, which looks for the answers in the documents.

    The passage is the most related paragraph of the document that has the best match
    (`answer_docs`); the match (`fake_answers`) is the answer, and those of people (`answers`) are
    further ones to compare with.
    """
    name, question = value.get("question_id"), value.get("question")
    try:
        document = value["documents"][value["answer_docs"][0]]
        context = document["paragraphs"][document["most_related_para"]]
        answers = [*value["fake_answers"], *value["answers"]]
    except (KeyError, IndexError, TypeError):
        fault = (
            "it has several documents and no match of an answer in them (answer_docs, "
            "fake_answers), which DuReader's utils/preprocess.py writes; leave it out, or prepare "
            "the file with that program"
        )
        return [Entry(name, None, question, fault=fault)]
    return [Entry(name, context, question, answers)]


# The keys that a value of a form has, and the function that reads it. The first that fits.
FORMS = {
    ("paragraphs",): _article,
    ("documents", "question"): _dureader,
    ("context_text", "qas"): _original_cmrc,
    ("qas",): _paragraph,
    ("context", "question"): _flat,
}


def _shown(name, number):
    is_name = type(name) is int or (isinstance(name, str) and name and name.isprintable())
    return name if is_name else f"number {number}"


def _question(path, entry, with_impossible, needs_answers):
    if entry.fault:
        raise RowFault(entry.fault)
    name = entry.id if type(entry.id) is int else require_text(entry.id, '"id"')
    context = require_text(entry.context, '"context"')
    text = require_text(entry.question, '"question"')
    is_impossible = _truth(entry.is_impossible)
    if entry.is_impossible is None and entry.lacks_answers:
        # In a file that is to be answered, the answers may have been taken out.
        is_impossible = needs_answers
    if is_impossible and not with_impossible:
        raise RowFault("it is impossible; only run_mrc --version_2_with_negative accepts this")
    answers = () if is_impossible else _answers(context, entry.answers, needs_answers)
    if needs_answers and not is_impossible:
        if not answers:
            raise RowFault('"answers" is empty')
        if answers[0].start is None:
            raise RowFault(f"the answer {answers[0].text!r} is not in its passage; correct it")
    return Question(name, context, text, answers, is_impossible, path)


def _truth(value):
    """Returns a truth as a bool, also one that is written as text or number, or is null."""
    truths = {"true": True, "false": False, "1": True, "0": False, "none": False}
    found = truths.get(str(value).lower()) if isinstance(value, str | int | None) else None
    if found is None:
        raise RowFault('"is_impossible" is neither true nor false')
    return found


def _answers(context, given, are_needed):
    """Returns a tuple of `Answer`; what is none is a `RowFault` only if answers are needed."""
    if not isinstance(given, list):
        if are_needed:
            raise RowFault('"answers" is missing or not a list')
        return ()
    found = []
    for answer in given:
        try:
            one = _answer(context, answer)
        except RowFault:
            if are_needed:
                raise
            continue
        # A text without a place that is in no passage is a placeholder, if answers may lack.
        if are_needed or one.start is not None or not one.is_searched:
            found.append(one)
    return tuple(found)


def _answer(context, answer):
    """Returns an `Answer`; it is an object with text and place, or the text alone."""
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, dict):
        raise RowFault("an answer is not a JSON object")
    text, start = require_text(answer.get("text"), '"text"'), answer.get("answer_start")
    if start is None:
        place = context.find(text)
        return Answer(text, None if place < 0 else place, is_searched=True)
    if isinstance(start, float) and start.is_integer():
        start = int(start)
    if type(start) is not int:
        raise RowFault('"answer_start" is not a whole number')
    place = _nearest(context, text, start)
    return Answer(text, place, place not in (None, start))


def _nearest(context, text, start):
    """Returns the place of a text in a passage that is nearest to `start`, or None."""
    places, place = [], context.find(text)
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return min(places, key=lambda place: abs(place - start), default=None)
