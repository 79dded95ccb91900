"""Entities as programs write them: places in characters, UTF-16 units or bytes, made exact."""

import collections
import itertools
import json
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data.entity_tags import LABEL, Entity
from nezha_tf.data.lines import RowFault, is_text

TRIMMED = "white space at the edges of entities, left out"
TWICE = "entities that are there twice, read once"
BLANK = "entities of white space alone, left out"
NO_LABEL = "entities without a label, left out"
UNSURE = (
    "entities behind an emoji or the like, which some programs count as two characters; the file "
    "lacks the words to check that"
)
# Names of what an entity has, in the programs' own words; CMeEE has `start_idx` and `type`.
STARTS, ENDS = ("start", "start_offset", "start_idx"), ("end", "end_offset", "end_idx")
LABELS, WORDS = ("label", "labels", "type"), ("text", "entity", "word")


class EntitySpan(NamedTuple):
    """An entity of a file: its places as they stand there, and its label.

    `words` are the characters that it covers, as the file says them; None: it does not say them.
    """

    start: object
    end: object
    label: object
    words: str | None = None


class Annotated(NamedTuple):
    """What a value of a file says.

    Attributes:
      text: str.
      spans: list of `EntitySpan`; None: it is not annotated.
      notes: `Counter` of what was passed over.
      tags: its tags, if it has tags instead of places.
    """

    text: str
    spans: list[EntitySpan] | None
    notes: collections.Counter
    tags: list[str] | None = None


class ExportedEntity(NamedTuple):
    """An entity to write: places as the file counts them, characters, and probability."""

    start: int
    end: int
    label: str
    words: str
    probability: float


class Counting(NamedTuple):
    """A way to count the places of entities.

    Attributes:
      note: what is noted of places that were read in this way; "": nothing.
      bounds: function of a text: the place of each character and of the text's end, rising.
      past: 1 if the end is the last place of an entity; 0 if it is the first one behind it.
    """

    note: str
    bounds: Callable
    past: int

    def places(self, text, start, end):
        """Returns (start, end) of the characters [start, end) of a text, counted in this way."""
        bounds = self.bounds(text)
        return int(bounds[start]), int(bounds[end]) - self.past


def _bounds(width):
    return lambda text: [0, *itertools.accumulate(map(width, text))]


def _one_line_end(text):
    """Places where CR and LF are one character, as Python's text files have them."""
    pairs = itertools.zip_longest(text, text[1:])
    return [0, *itertools.accumulate(pair != ("\r", "\n") for pair in pairs)]


CHARACTERS = _bounds(lambda character: 1)
UTF_16 = _bounds(lambda character: 1 + (character > "\uffff"))
UTF_8 = _bounds(lambda character: len(character.encode(errors="surrogatepass")))


def _countings(past, other):
    """Returns the ways to count, the likeliest first; words decide between them."""
    return (
        Counting("", CHARACTERS, past),
        Counting("entities placed in UTF-16 units, as JavaScript counts; read so", UTF_16, past),
        Counting("entities placed in bytes of UTF-8; read so", UTF_8, past),
        Counting("entities placed as if CR LF were one character; read so", _one_line_end, past),
        Counting(f"entities whose end is the {other}; read so", CHARACTERS, 1 - past),
    )


EXCLUSIVE = _countings(0, "last character itself")
INCLUSIVE = _countings(1, "first character behind them")


def only_label(labels):
    """Returns the label of an entity that may have a list of one, or of none (None)."""
    if not isinstance(labels, list):
        return labels
    if len(labels) > 1:
        raise RowFault(f"an entity has {len(labels)} labels ({json.dumps(labels)[:40]}); leave one")
    return labels[0] if labels else None


def spans_of(entities):
    """Returns (list of `EntitySpan`, `Counter` of notes) of a list of entities as JSON has them.

    An entity is [start, end, label] or an object. One with an empty list of labels is left out.
    """
    kept = [span for span in map(_span_of, entities) if span]
    return kept, +collections.Counter({NO_LABEL: len(entities) - len(kept)})


def _span_of(entity):
    if isinstance(entity, list) and len(entity) == 3:
        return EntitySpan(*entity)
    if not isinstance(entity, dict):
        raise RowFault(
            'an entity must be {"start":, "end":, "label":} or [start, end, label], not '
            f"{json.dumps(entity)[:40]}"
        )
    start, end, label, words = (
        next((entity[name] for name in names if name in entity), None)
        for names in (STARTS, ENDS, LABELS, WORDS)
    )
    if label == []:
        return None
    return EntitySpan(start, end, only_label(label), words if isinstance(words, str) else None)


class Found(NamedTuple):
    """The entities of a text: `Entity`s by characters, in order and without overlap.

    `counting` is the `Counting` of their places, `notes` counts what the user should know.
    """

    entities: list[Entity]
    counting: Counting
    notes: collections.Counter


def entities_of_spans(text, spans, countings=EXCLUSIVE, is_export=True):
    """Returns the entities of a text as `Found`.

    The first of `countings` is taken that gives every entity the words that the file says.

    Args:
      text: str.
      spans: list of `EntitySpan`.
      countings: `EXCLUSIVE` or `INCLUSIVE`; without words, their first.
      is_export: whether a program has written the places, so that white space at the edges of
        entities is left out and places without words are doubted.

    Raises:
      RowFault: an entity is not in the text, is not what the file says, has no label, or overlaps
        another.
    """
    for span in spans:
        _check(span, text)
    has_words = any(span.words is not None for span in spans)
    likely = countings if has_words else countings[:1]
    counting = next((r for r in likely if agrees(r, text, spans)), None)
    if counting is None:
        _refuse(text, spans, countings[0])
    notes = collections.Counter({counting.note: len(spans)} if counting.note else {})
    places = _Places(counting, text)
    first = next((n for n, character in enumerate(text) if character > "\uffff"), len(text))
    written = {}
    for span in spans:
        start, end = places.of(span)
        if is_export:
            notes[UNSURE] += span.words is None and start > first
            start, end = _trimmed(text, start, end, notes)
        entity = Entity(start, end, span.label)
        notes[TWICE] += entity in written
        if start < end:
            written[entity] = span
    entities = sorted(written)
    for before, after in itertools.pairwise(entities):
        if after.start < before.end:
            fault = f"the entities {tuple(before)} and {tuple(after)} overlap"
            raise RowFault(fault, written[after])
    return Found(entities, counting, +notes)


def agrees(counting, text, spans):
    """Whether all spans are in a text, with the words that the file says, if read so."""
    places = _Places(counting, text)
    return all(places.has(span) for span in spans)


class _Places:
    """Maps the places of a counting of a text to characters."""

    def __init__(self, counting, text):
        self._past, self._text = counting.past, text
        # Of several characters at a place, the last one begins there.
        self._characters = {place: n for n, place in enumerate(counting.bounds(text))}

    def of(self, span):
        """Returns (start, end) in characters, or None if a place is none, or the span is empty."""
        if type(span.start) is not int or type(span.end) is not int:
            return None
        start = self._characters.get(span.start)
        end = self._characters.get(span.end + self._past)
        return None if start is None or end is None or start >= end else (start, end)

    def has(self, span):
        """Whether a span is in the text, with its words."""
        place = self.of(span)
        if place is None:
            return False
        return span.words is None or _bare(span.words) == _bare(self._text[slice(*place)])


def _bare(words):
    """Words without white space; Label Studio and brat write line ends otherwise."""
    return "".join(words.replace("\\n", "\n").split())


def _check(span, text):
    if type(span.start) is not int or type(span.end) is not int:
        raise RowFault(_no_fit(span, text), span)
    label = span.label
    if not isinstance(label, str) or not LABEL.fullmatch(label) or not is_text(label):
        shown = json.dumps(label)[:40]
        raise RowFault(f"an entity's label is {shown}; it must be a word without blanks", span)


def _refuse(text, spans, counting):
    """Raises the `RowFault` of the first entity that is not found."""
    places = _Places(counting, text)
    span = next(span for span in spans if not places.has(span))
    place = places.of(span)
    if place is None:
        raise RowFault(_no_fit(span, text, counting), span)
    raise RowFault(
        f"the text has {text[slice(*place)][:40]!r} from {span.start} to {span.end}, but the file "
        f"says that {span.words[:40]!r} is there",
        span,
    )


def _no_fit(span, text, counting=EXCLUSIVE[0]):
    what = "its last character" if counting.past else "the first character after it"
    start, end = (json.dumps(place)[:40] for place in (span.start, span.end))
    fault = (
        f"an entity from {start} to {end} ({what}) does not fit a text of {len(text)} characters"
    )
    if type(span.end) is int and len(text) < span.end <= UTF_16(text)[-1]:
        fault += "; in UTF-16 units, as JavaScript counts, it would: correct the places"
    return fault


def _trimmed(text, start, end, notes):
    words = text[start:end]
    left, right = len(words) - len(words.lstrip()), len(words) - len(words.rstrip())
    if left == len(words):
        notes[BLANK] += 1
        return end, end
    notes[TRIMMED] += bool(left or right)
    return start + left, end - right
