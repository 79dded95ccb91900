"""Writes entities: the predictions, and the table of an evaluation."""

import itertools
import json
import os

from nezha_tf.data.compression import unpacked_name
from nezha_tf.data.entity_tags import tags_of
from nezha_tf.tasks.tagging.alignment import Unit, to_units
from nezha_tf.util import files, storage


def write_predictions(path, lines, characters, found, scheme):
    """Writes the entities that were found, in the sentences' order.

    Args:
      path: the file. If it ends in `.jsonl`, it gets a JSON line for each sentence; otherwise a
        character, a tab and its tag per line, and a blank line after each sentence; a line
        break inside a text is then written as a space.
      lines: the number of each sentence's line in its file.
      characters: the characters of each sentence, a str or a list of str.
      found: list with a list of `FoundEntity` for each sentence.
      scheme: the scheme of the tags, a key of `entity_tags.SCHEMES`.
    """
    rows = zip(lines, characters, found, strict=True)
    if path.endswith(".jsonl"):
        text = "".join(_json_line(number, "".join(one), entities) for number, one, entities in rows)
    else:
        text = "".join(_tag_lines(one, entities, scheme) for _, one, entities in rows)
    files.write_text(path, text)


def write_exports(folder, entity_files, found):
    """Writes each export of an annotation program again, with the entities that were found.

    Args:
      folder: the folder to write to. It is made if a file is written.
      entity_files: dict of path to `EntityFile`.
      found: list with a list of `FoundEntity` for each sentence of all files.
    """
    rest, taken = iter(found), set()
    for path, file in entity_files.items():
        entities = list(itertools.islice(rest, len(file.sentences)))
        if file.export:
            storage.makedirs(folder)
            name = _free_name(os.path.basename(unpacked_name(path)), taken)
            files.write_text(os.path.join(folder, name), file.export(entities))


def _free_name(name, taken):
    """Takes a name that is not taken yet; files of several folders may have the same."""
    stem, ending = os.path.splitext(name)
    names = itertools.chain([name], (f"{stem}_{n}{ending}" for n in itertools.count(2)))
    free = next(name for name in names if name not in taken)
    taken.add(free)
    return free


def _json_line(line, text, entities):
    entities = [
        {
            **entity._asdict(),
            "text": text[entity.start : entity.end],
            "probability": round(entity.probability, 6),
        }
        for entity in entities
    ]
    values = {"line": line, "text": text, "entities": entities}
    return json.dumps(values, ensure_ascii=False) + "\n"


def _tag_lines(characters, entities, scheme):
    ends = [0, *itertools.accumulate(map(len, characters))]
    units = [Unit(n, *places) for n, places in enumerate(itertools.pairwise(ends))]
    found = filter(None, to_units([entity.entity for entity in entities], units))
    tags = tags_of(found, len(units), scheme)
    rows = (f"{_shown(char)}\t{tag}\n" for char, tag in zip(characters, tags, strict=True))
    return "".join(rows) + "\n"


def _shown(character):
    return " " if character in ("\n", "\r") else character


def table_rows(scores, names):
    """Returns the table of an evaluation as lists of str; the first one has the names.

    Args:
      scores: dict of label to `metrics.Scores`.
      names: names of the columns after the label.
    """
    rows = [[label, *(f"{v:.4f}" for v in s[:-1]), str(s.support)] for label, s in scores.items()]
    return [["label", *names], *rows]
