"""brat's standoff files: entities in `NAME.ann`, their text in `NAME.txt`."""

import collections
import itertools
import re

from nezha_tf.data.corpus import read_lines
from nezha_tf.data.lines import RowFault
from nezha_tf.data.spans import EntitySpan, entities_of_spans

ENDING = ".ann"
PLACES = re.compile(r"[0-9]{1,12} [0-9]{1,12}(;[0-9]{1,12} [0-9]{1,12})*")
# The other lines of https://brat.nlplab.org/standoff.html.
OTHERS = {
    "R": "relations",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
    "*": "equivalences",
}


def text_path(path):
    """Returns the path of the text of a file of annotations."""
    return path.removesuffix(ENDING) + ".txt"


def read_text(path):
    """Returns the text of a file of annotations; places count its characters, line ends too.

    Raises:
      UserError: there is no such text, or it cannot be read.
    """
    return "".join(read_lines(text_path(path)))


def read_entities(text, lines, check_label):
    """Returns the entities of a text, by the lines of a file, as `spans.Found`.

    `check_label` raises a `RowFault` if a label is not allowed.

    Raises:
      RowFault: a line is faulty, or its entity does not fit the text, or overlaps another; `part`
        is the number of the line.
    """
    spans, notes = {}, collections.Counter()
    for number, line in enumerate(lines, start=1):
        if line.startswith("T"):
            try:
                spans[number] = _span(line, text)
                check_label(spans[number].label)
            except RowFault as fault:
                raise RowFault(str(fault), number) from fault
        elif line[:1] in OTHERS:
            notes[f"{OTHERS[line[0]]} of brat, passed over"] += 1
        elif line.strip():
            raise RowFault(f"{line[:40]!r} is no line of brat's standoff format", number)
    try:
        found = entities_of_spans(text, list(spans.values()))
    except RowFault as fault:
        number = next(number for number, span in spans.items() if span is fault.part)
        raise RowFault(str(fault), number) from fault
    return found._replace(notes=found.notes + notes)


def write_entities(text, found, counting):
    """Returns the contents of a file of annotations.

    Args:
      text: the text that they belong to.
      found: list of entities with `start`, `end` and `label`, by characters.
      counting: the `spans.Counting` of places.
    """
    lines = []
    for number, entity in enumerate(found, start=1):
        # An entity must not hold a line end.
        parts = [
            (entity.start + part.start(), entity.start + part.end())
            for part in re.finditer(r"[^\r\n]+", text[entity.start : entity.end])
        ]
        places = ";".join("{} {}".format(*counting.places(text, *part)) for part in parts)
        words = " ".join(text[slice(*part)] for part in parts)
        lines.append(f"T{number}\t{entity.label} {places}\t{words}\n")
    return "".join(lines)


def _span(line, text):
    parts = line.split("\t", 2)
    label, _, places = (parts[1] if len(parts) > 1 else "").partition(" ")
    if not PLACES.fullmatch(places):
        raise RowFault(f"{line[:40]!r} is not an identifier, a label with two places, and words")
    tokens = [[int(place) for place in token.split()] for token in places.split(";")]
    for (_, end), (start, _) in itertools.pairwise(tokens):
        # brat parts an entity where a line of the text ends.
        if text[end:start].strip() or start < end:
            raise RowFault(
                f"{parts[0]} is in several places ({places}), which tags cannot show; leave one"
            )
    return EntitySpan(tokens[0][0], tokens[-1][1], label, parts[2] if len(parts) > 2 else None)
