"""The JSON forms in which data sets hold passages with questions."""

from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data.json_items import NotJson, read_items
from nezha_tf.util.errors import UserError


class Entry(NamedTuple):
    """A question as a file has it; every part may be of any type.

    Attributes:
      id, context, question, is_impossible: the values of SQuAD's keys; None where there is none.
      answers: list of {"text", "answer_start"} or of texts.
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


class Form(NamedTuple):
    """A form of the values of a file: whether a value has it, and its list of `Entry`."""

    fits: Callable
    read: Callable


def entries_of(path, bad_rows):
    """Returns the `Entry`s of a file, in its order.

    Args:
      path: a JSON file (or `.gz`): SQuAD's object, an array, or an object on each line. Blank lines
        are passed over.
      bad_rows: `BadRows` for lines that are not JSON.

    Raises:
      UserError: the file cannot be read, is not JSON, or has no form of `FORMS`.
    """
    items = list(read_items(path, bad_rows).values)
    if all(isinstance(item.value, NotJson) for item in items):
        reason = f": {items[0].value.reason}" if items else "; it is empty"
        raise UserError(f"{path} is not JSON in UTF-8{reason}")
    entries = []
    for item in items:
        place, value = item.place, item.value
        if isinstance(value, NotJson):
            bad_rows.add(f"{path}, {place}: not JSON ({value.reason})")
            continue
        try:
            entries += [entry for part in _parts(value) for entry in _entries(part)]
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{path}, {place} does not have SQuAD's format ({error!r}): "
                '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
            ) from error
    return entries


def _parts(value):
    """Returns the values inside {"data": [...]}, or the value alone."""
    return list(value["data"]) if isinstance(value, dict) and "data" in value else [value]


def _entries(value):
    form = next((form for form in FORMS if form.fits(value)), None)
    if form is None:
        raise TypeError("no passage with questions")
    return form.read(value)


def _has(*names):
    return lambda value: isinstance(value, dict) and all(name in value for name in names)


def _article(value):
    """SQuAD's: {"paragraphs": [{"context":, "qas": [...]}]}."""
    return [entry for part in value["paragraphs"] for entry in _paragraph(part)]


def _paragraph(value):
    return [_of_squad(entry, value.get("context")) for entry in list(value["qas"])]


def _of_squad(entry, context):
    if not isinstance(entry, dict):
        return Entry(fault="it is not a JSON object")
    names = ("question", "answers", "is_impossible")
    # MRQA and SQuAD's derivatives have `qid`.
    name = entry.get("id", entry.get("qid"))
    return Entry(name, context, *(entry.get(name) for name in names))


def _original_cmrc(value):
    """CMRC2018's own: {"context_text":, "qas": [{"query_id":, "query_text":, "answers": []}]}."""
    names = ("query_text", "answers", "is_impossible")
    return [
        Entry(entry.get("query_id"), value["context_text"], *(entry.get(name) for name in names))
        if isinstance(entry, dict)
        else Entry(fault="it is not a JSON object")
        for entry in list(value["qas"])
    ]


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
    names = ("id", "context", "question")
    lacks_answers = answers == []
    given = (value.get(name) for name in names)
    return [Entry(*given, answers, value.get("is_impossible"), lacks_answers, fault)]


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


# The first that fits.
FORMS = (
    Form(_has("paragraphs"), _article),
    Form(_has("documents", "question"), _dureader),
    Form(_has("context_text", "qas"), _original_cmrc),
    Form(_has("qas"), _paragraph),
    Form(_has("context", "question"), _flat),
)
