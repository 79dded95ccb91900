"""Sentences with their entities: characters with tags, JSON lines with spans, or raw text."""

import dataclasses
import itertools
import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.corpus import read_lines
from nezha_tf.data.entity_tags import LABEL, TAG, Entity, entities_of, scheme_of, well_formed
from nezha_tf.errors import UserError

JSON_LINES = (".json", ".jsonl")


class Sentence(NamedTuple):
    """A text, and the entities on its characters by their place, or None where it has none."""

    text: str
    entities: list[Entity] | None


@dataclasses.dataclass
class EntityFile:
    """What a file holds.

    Attributes:
      sentences: list of `Sentence`.
      scheme: of its tags, a key of `SCHEMES`, or None where it has none.
      mended: entities that were not written as the scheme asks (I- without B-).
    """

    sentences: list[Sentence]
    scheme: str | None = None
    mended: int = 0


class _Fault(Exception):
    """What is wrong with a line."""


def read_entity_file(path, is_labelled=True, labels=None, bad_rows=None):
    """Reads a file of one of three forms, in UTF-8, with or without `.gz`.

    - `.json`, `.jsonl`: `{"text": ..., "entities": [{"start":, "end":, "label":}]}` a line, where
      `end` is the first character that is no part of the entity.
    - Characters with tags in BIO or BIOES, one a line, parted by a space or a tab; a blank line
      between sentences. An entity that does not begin or end as the scheme asks is taken as
      conlleval does, and counted.
    - Raw text, one sentence a line; a file is taken for it if it need not be labelled, and most of
      its lines are no character with a tag. Blank lines are passed over.

    Args:
      path: the file.
      is_labelled: whether every sentence must have entities, be it an empty list.
      labels: the labels that may be there; None: any.
      bad_rows: `BadRows` that takes the faults of sentences of tagged characters, or of lines;
        None: the first one is an error.

    Returns:
      `EntityFile`.

    Raises:
      UserError: the file cannot be read or holds no sentence, or the first row that is faulty.
    """
    lines = [line.rstrip("\r\n") for line in read_lines(path)]
    rows = _Rows(path, labels, bad_rows or BadRows())
    if path.removesuffix(".gz").endswith(JSON_LINES):
        found = _read_json_lines(lines, is_labelled, rows)
    elif is_labelled or _is_tagged(lines):
        found = _read_tagged(lines, rows)
    else:
        found = EntityFile([Sentence(line, None) for line in lines if line.strip()])
    if not found.sentences:
        raise UserError(f"{path} holds no sentence that is sound{rows.bad_rows.note()}")
    return found


class _Rows:
    """Makes a row of the file at a time, and knows what is to be done with a faulty one."""

    def __init__(self, path, labels, bad_rows):
        self._path = path
        self._labels = labels
        self.bad_rows = bad_rows

    def check_label(self, label):
        if self._labels is not None and label not in self._labels:
            known = ", ".join(sorted(self._labels))
            raise _Fault(f"the label {label!r} was not there in training ({known})")

    def fail(self, number, fault):
        """Says what is wrong with a line, or passes over its row."""
        self.bad_rows.add(f"{self._path}, line {number}: {fault}")


def _is_tagged(lines):
    filled = [line for line in lines if line.strip()]
    return 2 * sum(_is_character_with_tag(line) for line in filled) > len(filled)


def _is_character_with_tag(line):
    try:
        _character_and_tag(line)
    except _Fault:
        return False
    return True


def _read_tagged(lines, rows):
    """Reads tagged characters; their scheme shows only in the tags of all."""
    tagged = []
    for first, block in _blocks(lines):
        number = first
        try:
            pairs = []
            for number, line in enumerate(block, start=first):  # noqa: B007
                pairs.append(_character_and_tag(line))
                if pairs[-1][1] != "O":
                    rows.check_label(pairs[-1][1][2:])
            tagged.append(tuple(zip(*pairs, strict=True)))
        except _Fault as fault:
            rows.fail(number, fault)
    scheme = scheme_of(tag for _, tags in tagged for tag in tags)
    sentences, mended = [], 0
    for characters, tags in tagged:
        entities = entities_of(tags)
        mended += len(entities) - len(well_formed(list(tags), scheme))
        sentences.append(Sentence("".join(characters), entities))
    return EntityFile(sentences, scheme, mended)


def _blocks(lines):
    """Yields (number of the first line, lines) of what stands between blank lines."""
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
            raise _Fault(f"{parts[0]!r} is more than one character; write each with a tag")
        raise _Fault(f"{line!r} has no tag; write a character, a space or a tab, and its tag")
    tag = line[2:].strip()
    if not TAG.fullmatch(tag):
        raise _Fault(f"{tag!r} is no tag: O, or B-, I-, E- or S- with a label")
    return line[0], tag


def _read_json_lines(lines, is_labelled, rows):
    sentences = []
    for number, line in enumerate(lines, start=1):
        try:
            sentences.append(_parse_object(line, is_labelled, rows))
        except _Fault as fault:
            rows.fail(number, fault)
    return EntityFile(sentences)


def _parse_object(line, is_labelled, rows):
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Fault(f"no JSON ({error}); write one object a line") from error
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        raise _Fault('no JSON object with a text; write {"text": ..., "entities": [...]}')
    text, entities = found["text"], found.get("entities")
    if not text.strip():
        raise _Fault("the text is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _Fault("the text holds half a character (a lone \\ud800 to \\udfff)")
    if entities is None and not is_labelled:
        return Sentence(text, None)
    if not isinstance(entities, list):
        raise _Fault('"entities" is missing or no list; write [] where there is none')
    entities = sorted(_entity(entity, text, rows) for entity in entities)
    for before, after in itertools.pairwise(entities):
        if after.start < before.end:
            raise _Fault(f"the entities {tuple(before)} and {tuple(after)} overlap")
    return Sentence(text, entities)


def _entity(entity, text, rows):
    if not isinstance(entity, dict):
        raise _Fault(f'an entity is {{"start":, "end":, "label":}}, not {json.dumps(entity)[:40]}')
    start, end, label = (entity.get(name) for name in ("start", "end", "label"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise _Fault(
            f"an entity from {json.dumps(start)} to {json.dumps(end)} (the first character behind "
            f"it) is no part of a text of {len(text)} characters"
        )
    if not isinstance(label, str) or not LABEL.fullmatch(label):
        raise _Fault(f"an entity's label is {json.dumps(label)[:40]}, and must be a word")
    rows.check_label(label)
    return Entity(start, end, label)
