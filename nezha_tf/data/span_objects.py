"""Entities as lists in JSON objects: those of doccano, CLUENER, spaCy and of this project."""

import collections
import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import RowFault
from nezha_tf.data.entity_tags import Entity
from nezha_tf.data.spans import Span

# Names of what an entity has, in the programs' own words; CMeEE has `start_idx` and `type`.
STARTS, ENDS = ("start", "start_offset", "start_idx"), ("end", "end_offset", "end_idx")
LABELS, WORDS = ("label", "labels", "type"), ("text", "entity", "word")
LISTS = ("entities", "label", "labels", "spans", "annotations")
NO_LABEL = "entities without a label, left out"


class Annotated(NamedTuple):
    """What a value of a file says.

    Attributes:
      text: str.
      spans: list of `Span`; None: it is not annotated.
      told: `Counter` of what was passed over.
      tags: its tags, if it has tags instead of places; None: it has none.
    """

    text: str
    spans: list[Span] | None
    told: collections.Counter
    tags: list[str] | None = None


class Prediction(NamedTuple):
    """An entity to write.

    Attributes:
      start, end: its places, as the file counts them.
      label, words: its label and its characters.
      probability: from 0 to 1.
      entity: the `Entity` by characters.
    """

    start: int
    end: int
    label: str
    words: str
    probability: float
    entity: Entity


def text_of(value):
    """Returns the text of an object.

    Raises:
      RowFault: there is none.
    """
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise RowFault('not a JSON object with a text; write {"text": ..., "entities": [...]}')
    return text


def only_label(labels):
    """Returns the label of an entity that has a list of them, or None if the list is empty.

    Raises:
      RowFault: there are several.
    """
    if not isinstance(labels, list) or len(labels) < 2:
        return (labels or [None])[0] if isinstance(labels, list) else labels
    raise RowFault(f"an entity has {len(labels)} labels ({json.dumps(labels)[:40]}); leave one")


def span_of(entity):
    """Returns the `Span` of a list [start, end, label] or of an object; None if it has no label."""
    if isinstance(entity, list) and len(entity) == 3:
        return Span(*entity)
    if not isinstance(entity, dict):
        raise RowFault(
            'an entity must be {"start":, "end":, "label":} or [start, end, label], not '
            f"{json.dumps(entity)[:40]}"
        )
    start, end, label, words = (_first(entity, names) for names in (STARTS, ENDS, LABELS, WORDS))
    if label == []:
        return None
    return Span(start, end, only_label(label), words if isinstance(words, str) else None)


def spans_of(entities):
    """Returns (list of `Span`, `Counter` of what was passed over) of a list of entities."""
    spans = [span_of(entity) for entity in entities]
    kept = [span for span in spans if span]
    return kept, +collections.Counter({NO_LABEL: len(spans) - len(kept)})


def _first(entity, names):
    return next((entity[name] for name in names if name in entity), None)


def list_of(value):
    """Returns the name of an object's list of entities, if possible of one that has some; or None.

    Lists of texts beside them, such as the classes of a text, are none.
    """
    lists = [name for name in LISTS if isinstance(value.get(name), list)]
    full = (n for n in lists if any(isinstance(entity, list | dict) for entity in value[n]))
    return next(full, (lists or [None])[0])


def is_own(value):
    """Whether a value is this project's {"text":, "entities": [{"start":, "end":, "label":}]}.

    It may have whatever else beside these.
    """
    entities = value.get("entities") if isinstance(value, dict) else None
    if not isinstance(entities, list) or not isinstance(value.get("text"), str):
        return False
    if entities:
        return all(isinstance(entity, dict) and "start" in entity for entity in entities)
    return list_of(value) == "entities" and "relations" not in value


def read_list(value):
    """Reads {"text":, "entities" or "label" or "labels" or "spans": [...]}; the list may lack."""
    text, name = text_of(value), list_of(value)
    if name is None:
        is_bare = all(value.get(name) is None for name in LISTS)
        if not is_bare:
            raise RowFault('"entities" is missing or not a list; write [] if there are none')
        return Annotated(text, None, collections.Counter())
    return Annotated(text, *spans_of(value[name]))


def has_lists(value):
    """Whether entities are [start, end, label], as in doccano's older exports."""
    name = isinstance(value, dict) and list_of(value)
    if not name or (name == "entities" and not value[name]):
        return False
    return all(isinstance(entity, list) for entity in value[name])


def write_lists(value, _, found):
    """Writes what `has_lists` fits."""
    return {**value, list_of(value): [[p.start, p.end, p.label] for p in found]}


def is_doccano(value):
    """Whether entities are those of doccano's newer exports, which have relations beside them."""
    entities = value.get("entities") if isinstance(value, dict) else None
    if not isinstance(entities, list):
        return False
    names = entities[0].keys() if entities and isinstance(entities[0], dict) else ()
    return "start_offset" in names or (not entities and "relations" in value)


def write_doccano(value, _, found):
    """Writes what `is_doccano` fits; relations of other entities are left out."""
    entities = [
        {"label": p.label, "start_offset": p.start, "end_offset": p.end, "text": p.words}
        for p in found
    ]
    without = {"relations": []} if "relations" in value else {}
    return {**value, "entities": entities, **without}


def write_dicts(value, _, found):
    """Writes this project's own form."""
    entities = [{"start": p.start, "end": p.end, "label": p.label, "text": p.words} for p in found]
    return {**value, "entities": entities}


def is_cluener(value):
    """Whether a value has CLUENER's form: {"text":, "label": {label: {words: [[start, end]]}}}."""
    return isinstance(value, dict) and isinstance(value.get("label"), dict)


def read_cluener(value):
    """Reads what `is_cluener` fits; an end is the entity's last character."""
    spans = []
    for label, words in value["label"].items():
        if not isinstance(words, dict) or not all(isinstance(p, list) for p in words.values()):
            raise RowFault(f'"label" of {label!r} is not {{words: [[start, end], ...]}}')
        for said, places in words.items():
            for place in places:
                if not isinstance(place, list) or len(place) != 2:
                    raise RowFault(f"a place of {said[:40]!r} is not [start, end]")
                spans.append(Span(*place, label, said))
    return Annotated(text_of(value), spans, collections.Counter())


def write_cluener(value, _, found):
    """Writes what `is_cluener` fits, as the benchmark takes it."""
    labels = {}
    for p in found:
        labels.setdefault(p.label, {}).setdefault(p.words, []).append([p.start, p.end])
    return {**value, "label": labels}


def is_spacy(value):
    """Whether a value is spaCy's pair [text, {"entities": [[start, end, label], ...]}]."""
    kinds = [type(part) for part in value] if isinstance(value, list) else []
    return kinds == [str, dict]


def read_spacy(value):
    """Reads what `is_spacy` fits."""
    return read_list({**value[1], "text": value[0]})


def write_spacy(value, _, found):
    """Writes what `is_spacy` fits."""
    return [value[0], {**value[1], "entities": [[p.start, p.end, p.label] for p in found]}]
