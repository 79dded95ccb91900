"""Reads sentences with entities: tagged characters, JSON, brat's annotations, or raw text."""

import collections
import dataclasses
import functools
import json
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data import brat
from nezha_tf.data.annotations import read_annotation
from nezha_tf.data.bad_rows import BadRows, RowFault
from nezha_tf.data.entity_tags import TAG, Entity, entities_of, scheme_of, well_formed
from nezha_tf.data.json_items import NotJson, read_items
from nezha_tf.data.lines import bare_name, filled_lines, numbered_lines
from nezha_tf.data.spans import is_text
from nezha_tf.errors import UserError

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
      scheme: the scheme of its tags, a key of `SCHEMES`; None: the file has no tags.
      mended: number of entities that break the scheme's rules (I- without B-) and were repaired.
      told: `Counter` of what else is to be told.
      export: function that returns the file's contents with other entities, which are a list of
        `FoundEntity` for each sentence; None: the file is no export of an annotation program.
    """

    sentences: list[Sentence]
    scheme: str | None = None
    mended: int = 0
    told: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    export: Callable | None = None


def read_entity_file(path, is_labelled=True, labels=None, bad_rows=None):
    """Reads a UTF-8 file (or `.gz`) in the first of `FORMS` that fits.

    - `.json`, `.jsonl`: on each line, or in one array, a text with its entities in one of
      `annotations.FORMS`, such as `{"text": ..., "entities": [{"start":, "end":, "label":}]}`;
      `end` is the place of the first character after the entity. Blank lines are skipped.
    - `.ann`: brat's annotations, of which the text is beside it in `.txt`.
    - Tagged characters: on each line a character, a space or a tab, and a tag in BIO, BIOS or
      BIOES; a blank line between sentences. An entity that does not begin or end by the scheme's
      rules is read as conlleval reads it, and counted.
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
    source = _Source(path, is_labelled, _Rows(path, labels, bad_rows or BadRows()))
    found = next(form.read(source) for form in FORMS if form.fits(source))
    if not found.sentences and not source.ends_in(brat.ENDING):
        told = "".join(f"; {what}: {count:,}" for what, count in found.told.items())
        raise UserError(f"{path} has no valid sentence{told}{source.rows.bad_rows.note()}")
    return found


class _Rows:
    """Checks labels, and reports the faulty rows of a file."""

    def __init__(self, path, labels, bad_rows):
        self._path = path
        self._labels = labels
        self.bad_rows = bad_rows

    def check_label(self, label):
        if self._labels is not None and label not in self._labels:
            known = ", ".join(sorted(self._labels))
            raise RowFault(f"the label {label!r} is not one of the model's labels ({known})")

    def fail(self, place, fault):
        """Reports the fault at a place to `bad_rows`, which raises or counts it."""
        self.bad_rows.add(f"{self._path}, {place}: {fault}")


class _Source:
    """A file to read: its path, whether it must be labelled, its `_Rows` and its lines."""

    def __init__(self, path, is_labelled, rows):
        self.path, self.is_labelled, self.rows = path, is_labelled, rows

    @functools.cached_property
    def lines(self):
        return [line.text for line in numbered_lines(self.path)]

    def ends_in(self, endings):
        return bare_name(self.path).endswith(endings)


def _is_tagged(source):
    if source.is_labelled:
        return True
    filled = [line for line in source.lines if line.strip()]
    return 2 * sum(_is_character_with_tag(line) for line in filled) > len(filled)


def _is_character_with_tag(line):
    try:
        _character_and_tag(line)
    except RowFault:
        return False
    return True


def _read_tagged(source):
    """Reads tagged characters; the scheme is known only after all tags are read."""
    rows, tagged = source.rows, []
    for first, block in _blocks(source.lines):
        number = first
        try:
            pairs = []
            for number, line in enumerate(block, start=first):  # noqa: B007
                pairs.append(_character_and_tag(line))
                if pairs[-1][1] != "O":
                    rows.check_label(pairs[-1][1][2:])
            tagged.append(tuple(zip(*pairs, strict=True)))
        except RowFault as fault:
            rows.fail(f"line {number}", fault)
    scheme = scheme_of(tag for _, tags in tagged for tag in tags)
    sentences, mended = [], 0
    for characters, tags in tagged:
        entities = entities_of(tags)
        mended += len(entities) - len(well_formed(list(tags), scheme))
        sentences.append(Sentence("".join(characters), entities))
    return EntityFile(sentences, scheme, mended)


def _blocks(lines):
    """Yields (number of the first line, lines) for each block between blank lines."""
    block = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _character_and_tag(line):
    if line[1:2] not in (" ", "\t"):  # The character may itself be white space.
        parts = line.split()
        if len(parts) > 1 and len(parts[0]) > 1:
            raise RowFault(
                f"{parts[0]!r} is more than one character; write one character and its tag per line"
            )
        raise RowFault(f"{line!r} has no tag; write a character, a space or a tab, and its tag")
    tag = line[2:].strip()
    if not TAG.fullmatch(tag):
        raise RowFault(f"{tag!r} is not a tag; tags are O, or B-, I-, E- or S- with a label")
    return line[0], tag


def _read_raw(source):
    lines = filled_lines(source.path, source.rows.bad_rows)
    return EntityFile([Sentence(line.text, None) for line in lines])


def _read_json(source):
    found, told = [], collections.Counter()
    items = read_items(source.path, source.rows.bad_rows, "text")
    for item in items.values:
        try:
            annotation = _annotation(item.value, source)
        except RowFault as fault:
            source.rows.fail(item.place, fault)
            continue
        told += annotation.told
        if not annotation.is_passed_over:
            found.append(annotation)
    tags = [annotation.tags for annotation in found if annotation.tags]
    scheme = scheme_of(tag for one in tags for tag in one) if tags else None
    mended = sum(len(entities_of(one)) - len(well_formed(one, scheme)) for one in tags)
    sentences = [Sentence(annotation.text, annotation.entities) for annotation in found]
    export = _JsonExport(found, items.is_array) if any(a.form.write for a in found) else None
    return EntityFile(sentences, scheme, mended, +told, export)


def _annotation(value, source):
    if isinstance(value, NotJson):
        raise RowFault(f"not JSON ({value.reason}); write one object per line, or one array")
    annotation = read_annotation(value, source.is_labelled)
    for entity in annotation.entities or ():
        source.rows.check_label(entity.label)
    return annotation


class _JsonExport:
    """Writes annotations with other entities, as an array or on lines."""

    def __init__(self, annotations, is_array):
        self._annotations = annotations
        self._is_array = is_array

    def __call__(self, found):
        pairs = zip(self._annotations, found, strict=True)
        values = [annotation.rewritten(entities) for annotation, entities in pairs]
        if self._is_array:
            return _dumped(values, indent=1)
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
        found = brat.read_entities(text, source.lines, source.rows.check_label)
    except RowFault as fault:
        source.rows.fail(f"line {fault.part}", fault)
        return EntityFile([])

    def export(entities):
        return brat.write_entities(text, entities[0], found.reading)

    return EntityFile([Sentence(text, found.entities)], told=found.told, export=export)


class FileForm(NamedTuple):
    """A form of files: whether a `_Source` has it, and the `EntityFile` of a source."""

    fits: Callable
    read: Callable


FORMS = (
    FileForm(lambda source: source.ends_in(brat.ENDING), _read_brat),
    FileForm(lambda source: source.ends_in(JSON), _read_json),
    FileForm(_is_tagged, _read_tagged),
    FileForm(lambda source: True, _read_raw),
)
