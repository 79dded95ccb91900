"""Texts that are cut into tokens, with a tag for each, in JSON or in columns of a file."""

import collections
import itertools
from typing import NamedTuple

from nezha_tf.data.entity_tags import TAG, TAGS_MEANT, entities_of, scheme_of, tags_of
from nezha_tf.data.json_items import Item
from nezha_tf.data.lines import RowFault
from nezha_tf.data.spans import Annotated, EntitySpan

# The names of Hugging Face and of others.
TOKENS = ("tokens", "words", "text", "sentence", "chars")
TAGS = ("ner_tags", "tags", "labels", "label", "ner")
# Between tokens: Baidu's data sets have a control character, others (UER) a space.
CONTROL = "\x02"
NAMES_OF_TOKENS = ("text_a", *TOKENS)


def fits(value):
    """Whether an object has a list of tokens, or a text with a list of tags of its characters."""
    return _tokens_name(value) is not None


def read(value):
    """Reads what `fits`: `tokens` with `ner_tags`, or the like."""
    tokens, name = list(value[_tokens_name(value)]), _tags_name(value)
    if not all(isinstance(token, str) and token for token in tokens):
        raise RowFault(f'"{_tokens_name(value)}" holds what is no text, or is empty')
    text, places = _joined(tokens)
    if name is None:
        return Annotated(text, None, collections.Counter())
    tags = value[name]
    _check(tags, name, tokens)
    spans = [
        EntitySpan(places[e.start][0], places[e.end - 1][1], e.label) for e in entities_of(tags)
    ]
    return Annotated(text, spans, collections.Counter(), tags)


def write(value, found):
    """Writes what `fits`: a token has the tag of the entity with one of its characters."""
    name = _tags_name(value) or TAGS[0]
    _, places = _joined(list(value[_tokens_name(value)]))
    starts, ends = zip(*places, strict=True)
    entities, free = [], 0
    for p in found:
        inside = [n for n in range(free, len(places)) if ends[n] > p.start and starts[n] < p.end]
        if inside:
            entities.append((inside[0], inside[-1] + 1, p.label))
            free = inside[-1] + 1
    old = value.get(name)
    scheme = (isinstance(old, list) and scheme_of(old)) or "BIO"
    return {**value, name: tags_of(entities, len(places), scheme)}


def _tokens_name(value):
    lists = (name for name in TOKENS if isinstance(value.get(name), list) and value[name])
    name = next(lists, None)
    if name is None and isinstance(value.get("text"), str) and value["text"]:
        tags = value.get(_tags_name(value))
        name = "text" if tags and all(isinstance(tag, str) for tag in tags) else None
    return name


def _tags_name(value):
    return next((name for name in TAGS if isinstance(value.get(name), list)), None)


def _check(tags, name, tokens):
    if any(type(tag) is int for tag in tags):
        raise RowFault(
            f'"{name}" are numbers; write the names of the tags instead, which a data set of '
            f'Hugging Face has in features["{name}"].feature.names'
        )
    if len(tags) != len(tokens):
        raise RowFault(f'{len(tokens)} tokens, but {len(tags)} tags in "{name}"')
    for tag in tags:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise RowFault(f"{tag!r} is not a tag; {TAGS_MEANT}")


def _joined(tokens):
    """Returns (text, [(start, end) of each token]); words of letters get a space between them."""
    text, places = "", []
    are_words = any(len(token) > 1 for token in tokens)
    for before, token in itertools.pairwise(["", *tokens]):
        if are_words and _is_letter(before[-1:]) and _is_letter(token[0]):
            text += " "
        places.append((len(text), len(text) + len(token)))
        text += token
    return text, places


def _is_letter(character):
    """Whether a character would grow together with another one: no Chinese character."""
    return character.isalnum() and character < "\u2e80"


class TokenColumns(NamedTuple):
    """The columns of a file, separated by tabs.

    Attributes:
      header: the line that names them; None: there is none.
      tokens: index of the column of tokens.
      tags: index of the column of tags; None: there is none.
    """

    header: str | None
    tokens: int
    tags: int | None


def columns_of(lines):
    """Returns the `TokenColumns` of a file by its lines that are not blank, or None.

    The first line names them (`text_a`, `label`, in any order), or most lines have several tags
    behind their only tab. A file with `text_a` alone has no tags.
    """
    names = [name.strip().lower() for name in lines[0].split("\t")] if lines else []
    tokens = [n for n, name in enumerate(names) if name in NAMES_OF_TOKENS]
    tags = [n for n, name in enumerate(names) if name in TAGS]
    if tokens and (tags or names == ["text_a"]):
        return TokenColumns(lines[0], tokens[0], tags[0] if tags else None)
    return TokenColumns(None, 0, 1) if 2 * sum(map(_has_tags, lines)) > len(lines) else None


def read_columns(lines, columns):
    """Yields an `Item` for each line: a value that `token_lists` reads, or a `RowFault`.

    Args:
      lines: iterable of `Line`s that are not blank.
      columns: `TokenColumns`.
    """
    for line in lines:
        if line.text != columns.header:
            yield Item("line", line.number, _value(line.text, columns))


def write_columns(values, columns):
    """Returns the text of a file with these values."""
    lines = [columns.header] * (columns.header is not None)
    if columns.tags is None:
        columns, lines = TokenColumns("", 0, 1), ["text_a\tlabel"]
    for value in values:
        cells = [""] * (max(columns.tokens, columns.tags) + 1)
        cells[columns.tokens] = " ".join(value[TOKENS[0]])
        cells[columns.tags] = " ".join(value[TAGS[0]])
        lines.append("\t".join(cells))
    return "".join(f"{line}\n" for line in lines)


def _has_tags(line):
    cells = line.split("\t")
    tags = _parted(cells[1]) if len(cells) == 2 else []
    return len(tags) > 1 and all(map(TAG.fullmatch, tags))


def _value(line, columns):
    cells = line.split("\t")
    least = 1 + max(columns.tokens, -1 if columns.tags is None else columns.tags)
    if len(cells) < least:
        return RowFault(f"{len(cells)} columns separated by tabs, not {least}: tokens and tags")
    sentence, tokens = cells[columns.tokens], _parted(cells[columns.tokens])
    if columns.tags is None:
        return {TOKENS[0]: tokens}
    tags = _parted(cells[columns.tags])
    # The characters of the sentence may stand without anything between them.
    if len(tokens) != len(tags) == len(sentence):
        tokens = list(sentence)
    if len(tokens) != len(tags):
        return RowFault(f"{len(tokens)} tokens, but {len(tags)} tags")
    return {TOKENS[0]: tokens, TAGS[0]: tags}


def _parted(text):
    return [part for part in text.strip().split(CONTROL if CONTROL in text else " ") if part]
