"""Reads sentences with entities: tagged characters, JSON, brat's annotations, or raw text."""

import collections
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data import brat
from nezha_tf.data.annotations import read_annotation
from nezha_tf.data.compression import bare_name
from nezha_tf.data.entity_tags import Entity, entities_of, require_scheme, well_formed
from nezha_tf.data.json_items import read_items
from nezha_tf.data.lines import BadRows, RowFault, filled_lines, is_text, whole_lines
from nezha_tf.data.tagged_lines import is_tagged_line, read_tagged_lines
from nezha_tf.data.token_lists import columns_of, read_columns, write_columns
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError

JSON = (".json", ".jsonl", ".ndjson")


class Sentence(NamedTuple):
    """A text and its entities, in order of place; None: the text is not labelled."""

    text: str
    entities: list[Entity] | None


@dataclasses.dataclass
class EntityFile:
    """The contents of a file.

    Attributes:
      sentences: list of `Sentence`.
      lines: number of the first line of each sentence, or of its item in an array.
      characters: of files of tagged characters, lists of the characters of each sentence, which
        may have several code points; None: each code point is one.
      scheme: the scheme of its tags, a key of `SCHEMES`; None: the file has no tags.
      mended: number of entities that break the scheme's rules (I- without B-) and were repaired.
      notes: `Counter` of what else the user should know.
      export: function that returns the file's contents with other entities, a list of
        `FoundEntity` for each sentence; None: the file is no export of an annotation program.
    """

    sentences: list[Sentence]
    lines: list[int]
    characters: list[list[str]] | None = None
    scheme: str | None = None
    mended: int = 0
    notes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    export: Callable | None = None

    def set_scheme(self, sentences, path):
        """Sets `scheme` and `mended` by the lists of tags of a file, known when all are read."""
        self.scheme = require_scheme((tag for tags in sentences for tag in tags), path)
        self.mended = sum(
            len(entities_of(tags)) - len(well_formed(tags, self.scheme)) for tags in sentences
        )


def read_entity_file(path, is_labelled=True, labels=None, bad_rows=None):
    """Reads a UTF-8 file (or `.gz`) in the first of `FORMS` that fits.

    - `.json`, `.jsonl`: on each line, or in one array, a text with its entities in one of
      `annotations.FORMS`, such as `{"text": ..., "entities": [{"start":, "end":, "label":}]}`;
      `end` is the place of the first character after the entity. Blank lines are skipped.
    - `.ann`: brat's annotations, of which the text is beside it in `.txt`.
    - Tagged characters: on each line a character, a space or a tab, and a tag of one of `SCHEMES`;
      a blank line between sentences (`read_tagged_lines`). An entity that does not begin or end by
      the scheme's rules is read as conlleval reads it, and counted.
    - Columns: on each line the characters of a sentence, a tab, and their tags (`columns_of`).
    - Raw text, one sentence per line; blank lines are skipped. A file is read as raw text if
      `is_labelled` is False and at least half of its lines are not tagged characters.

    Args:
      path: the file.
      is_labelled: whether every sentence must have a list of entities, which may be empty.
      labels: the allowed labels; None: any.
      bad_rows: `BadRows` that collects the faults of lines, of sentences of tagged characters, or
        of whole texts of brat; None: the first fault is an error.

    Returns:
      An `EntityFile`.

    Raises:
      UserError: the file cannot be read, has no valid sentence, or has a faulty row. A file of
        brat's, which is a single text, may have none if `bad_rows` skips it.
    """
    source = EntitySource(path, is_labelled, labels, bad_rows or BadRows())
    found = next(form.read(source) for form in FORMS if form.fits(source))
    if not found.sentences and not source.ends_in(brat.ENDING):
        notes = "".join(f"; {what}: {count:,}" for what, count in found.notes.items())
        raise UserError(f"{path} has no valid sentence{notes}{source.bad_rows.note()}")
    return found


class EntitySource:
    """A file to read; the arguments are those of `read_entity_file`."""

    def __init__(self, path, is_labelled, labels, bad_rows):
        self.path, self.is_labelled, self.bad_rows = path, is_labelled, bad_rows
        self._labels = labels

    def ends_in(self, endings):
        return bare_name(self.path).endswith(endings)

    @functools.cached_property
    def lines(self):
        return [line.rstrip("\r\n") for line in whole_lines(self.path)]

    @functools.cached_property
    def columns(self):
        return columns_of([line for line in self.lines if not is_blank(line)])

    def is_tagged(self):
        """Whether its lines are tagged characters: if it must be labelled, or if most are."""
        filled = [line for line in self.lines if not is_blank(line)]
        return self.is_labelled or 2 * sum(map(is_tagged_line, filled)) > len(filled)

    def check_label(self, label):
        if self._labels is not None and label not in self._labels:
            known = ", ".join(sorted(self._labels))
            raise RowFault(f"the label {label!r} is not one of the model's labels ({known})")

    def fail(self, place, fault):
        """Reports the fault at a place to `bad_rows`, which raises or counts it."""
        self.bad_rows.add(f"{self.path}, {place}: {fault}")


def _read_tagged(source):
    found = read_tagged_lines(source.lines, source)
    sentences = [_sentence(one) for one in found]
    read = EntityFile(sentences, [one.line for one in found], [one.characters for one in found])
    read.set_scheme([one.tags for one in found], source.path)
    return read


def _sentence(tagged):
    starts = [0, *itertools.accumulate(map(len, tagged.characters))]
    entities = [Entity(starts[e.start], starts[e.end], e.label) for e in entities_of(tagged.tags)]
    return Sentence("".join(tagged.characters), entities)


def _read_raw(source):
    lines = list(filled_lines(source.path, source.bad_rows))
    sentences = [Sentence(line.text, None) for line in lines]
    return EntityFile(sentences, [line.number for line in lines])


def _read_json(source):
    items = read_items(source.path, source.bad_rows, "text")
    return _read_values(items.values, source, _as_array if items.is_array else _as_lines)


def _read_columns(source):
    items = read_columns(filled_lines(source.path, source.bad_rows), source.columns)
    write = functools.partial(write_columns, columns=source.columns)
    return _read_values(items, source, write)


def _read_values(items, source, write):
    """Reads `Item`s; `write` makes the text of a file of a list of values."""
    found, lines, notes = [], [], collections.Counter()
    for item in items:
        try:
            annotation = _annotation(item.value, source)
        except RowFault as fault:
            source.fail(item.place, fault)
            continue
        notes += annotation.notes
        if not annotation.is_passed_over:
            found.append(annotation)
            lines.append(item.number)
    read = EntityFile([Sentence(one.text, one.entities) for one in found], lines, notes=+notes)
    tags = [annotation.tags for annotation in found if annotation.tags]
    if tags:
        read.set_scheme(tags, source.path)
    if any(annotation.form.write for annotation in found):

        def export(entities):
            pairs = zip(found, entities, strict=True)
            return write([annotation.rewritten(of_it) for annotation, of_it in pairs])

        read.export = export
    return read


def _annotation(value, source):
    if isinstance(value, RowFault):
        raise value
    annotation = read_annotation(value, source.is_labelled)
    for entity in annotation.entities or ():
        source.check_label(entity.label)
    return annotation


def _as_array(values):
    return _dumped(values, indent=1)


def _as_lines(values):
    return "".join(map(_dumped, values))


def _dumped(value, indent=None):
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # What is beside the text may hold half a character.
    return (text if is_text(text) else json.dumps(value, indent=indent)) + "\n"


def _read_brat(source):
    text = brat.read_text(source.path)
    try:
        if not text.strip():
            raise RowFault(f"{brat.text_path(source.path)} has no text", 1)
        found = brat.read_entities(text, source.lines, source.check_label)
    except RowFault as fault:
        source.fail(f"line {fault.part}", fault)
        return EntityFile([], [])
    return EntityFile(
        [Sentence(text, found.entities)],
        [1],
        notes=found.notes,
        export=lambda entities: brat.write_entities(text, entities[0], found.counting),
    )


class FileForm(NamedTuple):
    """A form of files: whether a `EntitySource` has it, and the `EntityFile` of a source."""

    fits: Callable
    read: Callable


FORMS = (
    FileForm(lambda source: source.ends_in(brat.ENDING), _read_brat),
    FileForm(lambda source: source.ends_in(JSON), _read_json),
    FileForm(lambda source: source.columns is not None, _read_columns),
    FileForm(EntitySource.is_tagged, _read_tagged),
    FileForm(lambda source: True, _read_raw),
)
