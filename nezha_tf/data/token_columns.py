"""Reads sentences of which each line has the tokens in one column and their tags in another."""

from typing import NamedTuple

from nezha_tf.data.bad_rows import RowFault
from nezha_tf.data.entity_tags import TAG
from nezha_tf.data.json_items import Item
from nezha_tf.data.token_lists import TAGS, TOKENS

# Between tokens: Baidu's data sets have a control character, others (UER) a space.
CONTROL = "\x02"
NAMES_OF_TOKENS = ("text_a", *TOKENS)


class Columns(NamedTuple):
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
    """Returns the `Columns` of a file by its lines that are not blank; None: it has another form.

    The first line names them (`text_a`, `label`, in any order), or most lines have several tags
    behind their only tab. A file with `text_a` alone has no tags.
    """
    names = [name.strip().lower() for name in lines[0].split("\t")] if lines else []
    tokens = [n for n, name in enumerate(names) if name in NAMES_OF_TOKENS]
    tags = [n for n, name in enumerate(names) if name in TAGS]
    if tokens and (tags or names == ["text_a"]):
        return Columns(lines[0], tokens[0], tags[0] if tags else None)
    return Columns(None, 0, 1) if 2 * sum(map(_has_tags, lines)) > len(lines) else None


def read_columns(lines, columns):
    """Yields an `Item` for each line: a value that `token_lists` reads, or a `RowFault`.

    Args:
      lines: iterable of `Line`s that are not blank.
      columns: `Columns`.
    """
    for line in lines:
        if line.text != columns.header:
            yield Item("line", line.number, _value(line.text, columns))


def write_columns(values, columns):
    """Returns the text of a file with these values."""
    lines = [columns.header] * (columns.header is not None)
    if columns.tags is None:
        columns, lines = Columns("", 0, 1), ["text_a\tlabel"]
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
