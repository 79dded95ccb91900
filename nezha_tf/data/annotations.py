"""The JSON forms in which annotation programs and data sets hold a text with its entities."""

import collections
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data import label_studio, token_lists
from nezha_tf.data.entity_tags import Entity
from nezha_tf.data.lines import RowFault, is_text
from nezha_tf.data.spans import (
    EXCLUSIVE,
    INCLUSIVE,
    Annotated,
    Counting,
    EntitySpan,
    ExportedEntity,
    entities_of_spans,
    spans_of,
)

# The names of a list of entities.
LISTS = ("entities", "label", "labels", "spans", "annotations")
NO_TEXT = 'not a JSON object with a text; write {"text": ..., "entities": [...]}'
NO_LIST = '"entities" is missing or not a list; write [] if there are none'


class Annotation(NamedTuple):
    """A text of a file and its entities.

    Attributes:
      value: the JSON value.
      form: its `AnnotationForm`.
      text: str.
      entities: list of `Entity`, in order and without overlap; None: it is not annotated.
      counting: the `Counting` of its places.
      notes: `Counter` of what the user should know.
      tags: its tags, as they stand in the file; None: it has none.
      is_passed_over: whether it is left out because nobody has annotated it.
    """

    value: object
    form: NamedTuple
    text: str
    entities: list[Entity] | None
    counting: Counting
    notes: collections.Counter
    tags: list[str] | None
    is_passed_over: bool

    def rewritten(self, found):
        """Returns the value with other entities, in its own form.

        Args:
          found: list of entities with `start`, `end`, `label` and `probability`, by characters.
        """
        predictions = [
            ExportedEntity(
                *self.counting.places(self.text, entity.start, entity.end),
                entity.label,
                self.text[entity.start : entity.end],
                round(entity.probability, 6),
            )
            for entity in found
        ]
        return (self.form.write or _write_dicts)(self.value, predictions)


def read_annotation(value, is_labelled):
    """Returns the `Annotation` of a JSON value.

    Args:
      value: a value of a file.
      is_labelled: whether it must have a list of entities, which may be empty.

    Raises:
      RowFault: the value has no known form, or is faulty.
    """
    if isinstance(value, list) and [type(part) for part in value] == [str, dict]:
        form = SPACY
    elif isinstance(value, dict):
        form = next(form for form in FORMS if form.fits(value))
    else:
        raise RowFault(NO_TEXT)
    text, spans, notes, tags = form.read(value)
    if not text.strip():
        raise RowFault("the text is empty")
    if not is_text(text):
        raise RowFault("the text holds half a character (a lone \\ud800 to \\udfff); remove it")
    if spans is None:
        is_passed_over = is_labelled and bool(form.unlabelled)
        if is_labelled and not is_passed_over:
            raise RowFault(NO_LIST)
        notes += collections.Counter([form.unlabelled] * is_passed_over)
        return Annotation(value, form, text, None, form.countings[0], notes, tags, is_passed_over)
    found = entities_of_spans(text, spans, form.countings, form.is_export)
    notes += found.notes
    return Annotation(value, form, text, found.entities, found.counting, notes, tags, False)


def _list_of(value):
    """Returns the name of an object's list of entities, if possible of one that has some; or None.

    Lists of texts beside them, such as the classes of a text, are none.
    """
    lists = [name for name in LISTS if isinstance(value.get(name), list)]
    full = (n for n in lists if any(isinstance(entity, list | dict) for entity in value[n]))
    return next(full, (lists or [None])[0])


def _text_of(value):
    if not isinstance(value.get("text"), str):
        raise RowFault(NO_TEXT)
    return value["text"]


def _read_list(value):
    """Reads {"text":, "entities" or "label" or "labels" or "spans": [...]}; the list may lack."""
    text, name = _text_of(value), _list_of(value)
    if name is None:
        if any(value.get(name) is not None for name in LISTS):
            raise RowFault(NO_LIST)
        return Annotated(text, None, collections.Counter())
    return Annotated(text, *spans_of(value[name]))


def _is_own(value):
    """Whether a value is {"text":, "entities": [{"start":, "end":, "label":}]}.

    It may have whatever else beside these.
    """
    entities = value.get("entities")
    if not isinstance(entities, list) or not isinstance(value.get("text"), str):
        return False
    if entities:
        return all(isinstance(entity, dict) and "start" in entity for entity in entities)
    return _list_of(value) == "entities" and "relations" not in value


def _write_dicts(value, found):
    entities = [{"start": p.start, "end": p.end, "label": p.label, "text": p.words} for p in found]
    return {**value, "entities": entities}


def _triples(found):
    return [[p.start, p.end, p.label] for p in found]


def _has_triples(value):
    name = _list_of(value)
    if not name or (name == "entities" and not value[name]):
        return False
    return all(isinstance(entity, list) for entity in value[name])


def _is_doccano(value):
    """Whether entities are those of doccano's newer exports, which have relations beside them."""
    entities = value.get("entities")
    if not isinstance(entities, list):
        return False
    names = entities[0].keys() if entities and isinstance(entities[0], dict) else ()
    return "start_offset" in names or (not entities and "relations" in value)


def _write_doccano(value, found):
    """Writes what `_is_doccano` fits; relations of other entities are left out."""
    entities = [
        {"label": p.label, "start_offset": p.start, "end_offset": p.end, "text": p.words}
        for p in found
    ]
    without = {"relations": []} if "relations" in value else {}
    return {**value, "entities": entities, **without}


def _read_cluener(value):
    """Reads {"text":, "label": {label: {words: [[start, end]]}}}; an end is the last character."""
    spans = []
    for label, words in value["label"].items():
        if not isinstance(words, dict) or not all(isinstance(p, list) for p in words.values()):
            raise RowFault(f'"label" of {label!r} is not {{words: [[start, end], ...]}}')
        for said, places in words.items():
            for place in places:
                if not isinstance(place, list) or len(place) != 2:
                    raise RowFault(f"a place of {said[:40]!r} is not [start, end]")
                spans.append(EntitySpan(*place, label, said))
    return Annotated(_text_of(value), spans, collections.Counter())


def _write_cluener(value, found):
    labels = {}
    for p in found:
        labels.setdefault(p.label, {}).setdefault(p.words, []).append([p.start, p.end])
    return {**value, "label": labels}


class AnnotationForm(NamedTuple):
    """A form of JSON objects that hold a text with its entities.

    Attributes:
      fits: function of an object: whether it has this form.
      read: function of a value that returns `Annotated`, or raises `RowFault`.
      write: function of (value, list of `ExportedEntity`) that returns a value of this form with
        these entities instead; None: `predictions.jsonl` is in this form.
      countings: how places are counted, for `entities_of_spans`.
      is_export: see `entities_of_spans`.
      unlabelled: what is noted of values that nobody has annotated, if these are passed over where
        entities are needed; "": they are faults.
    """

    fits: Callable
    read: Callable
    write: Callable | None
    countings: tuple = EXCLUSIVE
    is_export: bool = True
    unlabelled: str = ""


# spaCy's pair [text, {"entities": [[start, end, label], ...]}].
SPACY = AnnotationForm(
    None,
    lambda value: _read_list({**value[1], "text": value[0]}),
    lambda value, found: [value[0], {**value[1], "entities": _triples(found)}],
)
# The first that fits an object.
FORMS = (
    AnnotationForm(_is_own, _read_list, None, is_export=False),
    AnnotationForm(
        label_studio.is_task,
        label_studio.read_task,
        label_studio.write_task,
        unlabelled=label_studio.UNLABELLED,
    ),
    AnnotationForm(
        label_studio.is_annotation, label_studio.read_annotation, label_studio.write_annotation
    ),
    AnnotationForm(token_lists.fits, token_lists.read, token_lists.write, is_export=False),
    AnnotationForm(
        lambda value: isinstance(value.get("label"), dict),
        _read_cluener,
        _write_cluener,
        countings=INCLUSIVE,
    ),
    AnnotationForm(label_studio.is_minimal, label_studio.read_minimal, label_studio.write_minimal),
    # doccano's older exports.
    AnnotationForm(
        _has_triples,
        _read_list,
        lambda value, found: {**value, _list_of(value): _triples(found)},
    ),
    AnnotationForm(_is_doccano, _read_list, _write_doccano),
    # A text alone, or entities with other names (CMeEE).
    AnnotationForm(lambda value: True, _read_list, None, is_export=False),
)
