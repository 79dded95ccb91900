"""Reads the values of a JSON file: one on each line, all in an array, or a table."""

import itertools
import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from nezha_tf.data.lines import RowFault, filled_lines

_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class Item(NamedTuple):
    """A value of a file, or the `RowFault` of one that cannot be read.

    Its unit is "line", or "item" in an array or a table; its number counts from 1.
    """

    unit: str
    number: int
    value: object

    @property
    def place(self):
        """Unit and number, for messages."""
        return f"{self.unit} {self.number}"


class Items(NamedTuple):
    """The values of a file: an iterable of `Item`, and whether the file is one array."""

    values: Iterable[Item]
    is_array: bool


def read_items(path, bad_rows, column=None):
    """Returns the `Items` of a UTF-8 file, also packed.

    The first line tells the form. If it is JSON and there are others, each line has a value. Else
    the file is read as a whole: an array, a table, or values one after the other, which may go over
    several lines.

    Args:
      path: the file.
      bad_rows: `BadRows` that counts the blank lines.
      column: name of a column of the table that an object may be, in one of pandas' forms
        (`DataFrame.to_json`, of which orient="columns" is the default); None: objects are values.

    Raises:
      UserError: the file cannot be read or is not UTF-8.
    """
    lines = filled_lines(path, bad_rows)
    head = list(itertools.islice(lines, 2))
    if not head:
        return Items([], False)
    first = _parsed(head[0])
    if isinstance(first.value, RowFault):
        return _whole([*head, *lines], column)
    if len(head) == 1:
        return _document(first, column)
    return Items(itertools.chain([first], map(_parsed, itertools.chain(head[1:], lines))), False)


def _parsed(line):
    try:
        return Item("line", line.number, json.loads(line.text))
    except (ValueError, RecursionError) as error:
        return Item("line", line.number, _not_json(error))


def _not_json(error):
    reason = " ".join(str(error).split())
    return RowFault(f"not JSON ({reason}); write one object per line, or one array")


def _whole(lines, column):
    """Returns the `Items` of lines of which the first is not JSON alone."""
    ends = [0, *(line.number for line in lines)]
    # Between the lines were blank ones.
    gaps = ["\n" * (end - before) for before, end in itertools.pairwise(ends)]
    text = "".join(gap + line.text for gap, line in zip(gaps, lines, strict=True))[1:]
    try:
        values = _values(text)
    except (ValueError, RecursionError) as error:
        if not lines[0].text.lstrip().startswith("["):
            return Items(map(_parsed, lines), False)
        # An array with a fault, not lines of which each has one.
        number = getattr(error, "lineno", lines[0].number)
        return Items([Item("line", number, _not_json(error))], True)
    return _document(values[0], column) if len(values) == 1 else Items(values, False)


def _values(text):
    """Returns the values of a text, one after the other, each as `Item` with its first line."""
    values, number, end = [], 1, 0
    while (begin := _SPACE.match(text, end).end()) < len(text):
        number += text.count("\n", end, begin)
        value, end = _DECODER.raw_decode(text, begin)
        values.append(Item("line", number, value))
        number += text.count("\n", begin, end)
    return values


def _document(only, column):
    """Returns the `Items` of a file's only value, an `Item`."""
    is_array, rows = isinstance(only.value, list), only.value
    if not is_array:
        is_table = isinstance(only.value, dict) and column is not None
        rows = _rows_of_table(only.value, column) if is_table else None
    if not rows:
        return Items([only], False)
    return Items([Item("item", number, row) for number, row in enumerate(rows, 1)], is_array)


def _rows_of_table(value, column):
    """Returns the rows of an object that is a table with a column, a list; None: it is none."""
    data, names = value.get("data"), value.get("columns")
    if isinstance(data, list) and set(value) <= {"data", "schema", "version"}:
        return data if all(isinstance(row, dict) for row in data) else None  # orient="table"
    if isinstance(data, list) and isinstance(names, list) and column in names:  # orient="split"
        is_table = all(isinstance(row, list) and len(row) == len(names) for row in data)
        is_table &= all(isinstance(name, str) for name in names)
        return [dict(zip(names, row, strict=True)) for row in data] if is_table else None
    if not all(isinstance(part, dict) for part in value.values()):
        return None
    if column in value:  # orient="columns"
        return [{n: part[k] for n, part in value.items() if k in part} for k in value[column]]
    rows = list(value.values())
    return rows if rows and column in rows[0] else None  # orient="index"
