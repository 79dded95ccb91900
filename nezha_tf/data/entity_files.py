"""Reads sentences with entities: tagged characters, JSON lines with spans, or raw text."""

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
    """

    sentences: list[Sentence]
    scheme: str | None = None
    mended: int = 0


class _Fault(Exception):
    """An error in a line."""


def read_entity_file(path, is_labelled=True, labels=None, bad_rows=None):
    """Reads a UTF-8 file (or `.gz`) of one of three forms.

    - `.json`, `.jsonl`: `{"text": ..., "entities": [{"start":, "end":, "label":}]}` on each line;
      `end` is the place of the first character after the entity.
    - Tagged characters: on each line a character, a space or a tab, and a tag in BIO, BIOS or
      BIOES; a blank line between sentences. An entity that does not begin or end by the scheme's
      rules is read as conlleval reads it, and counted.
    - Raw text, one sentence per line; blank lines are skipped. A file is read as raw text if
      `is_labelled` is False and at least half of its lines are not tagged characters.

    Args:
      path: the file.
      is_labelled: whether every sentence must have a list of entities, which may be empty.
      labels: the allowed labels; None: any.
      bad_rows: `BadRows` that collects the faults of lines, or of sentences of tagged characters;
        None: the first fault is an error.

    Returns:
      An `EntityFile`.

    Raises:
      UserError: the file cannot be read, has no valid sentence, or has a faulty row.
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
        raise UserError(f"{path} has no valid sentence{rows.bad_rows.note()}")
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
            raise _Fault(f"the label {label!r} is not one of the model's labels ({known})")

    def fail(self, number, fault):
        """Reports the fault of a line to `bad_rows`, which raises or counts it."""
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
    """Reads tagged characters; the scheme is known only after all tags are read."""
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
            raise _Fault(
                f"{parts[0]!r} is more than one character; write one character and its tag per line"
            )
        raise _Fault(f"{line!r} has no tag; write a character, a space or a tab, and its tag")
    tag = line[2:].strip()
    if not TAG.fullmatch(tag):
        raise _Fault(f"{tag!r} is not a tag; tags are O, or B-, I-, E- or S- with a label")
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
        raise _Fault(f"not JSON ({error}); write one object per line") from error
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        raise _Fault('not a JSON object with a text; write {"text": ..., "entities": [...]}')
    text, entities = found["text"], found.get("entities")
    if not text.strip():
        raise _Fault("the text is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _Fault("the text holds half a character (a lone \\ud800 to \\udfff); remove it")
    if entities is None and not is_labelled:
        return Sentence(text, None)
    if not isinstance(entities, list):
        raise _Fault('"entities" is missing or not a list; write [] if there are none')
    entities = sorted(_entity(entity, text, rows) for entity in entities)
    for before, after in itertools.pairwise(entities):
        if after.start < before.end:
            raise _Fault(f"the entities {tuple(before)} and {tuple(after)} overlap")
    return Sentence(text, entities)


def _entity(entity, text, rows):
    if not isinstance(entity, dict):
        raise _Fault(
            f'an entity must be {{"start":, "end":, "label":}}, not {json.dumps(entity)[:40]}'
        )
    start, end, label = (entity.get(name) for name in ("start", "end", "label"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise _Fault(
            f"an entity from {json.dumps(start)} to {json.dumps(end)} (the first character after "
            f"it) does not fit a text of {len(text)} characters"
        )
    if not isinstance(label, str) or not LABEL.fullmatch(label):
        raise _Fault(f"an entity's label is {json.dumps(label)[:40]}; it must be a word")
    rows.check_label(label)
    return Entity(start, end, label)
