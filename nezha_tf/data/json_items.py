"""Reads the values of a JSON file: one on each line, all in an array, or a table."""

import itertools
import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from nezha_tf.data.lines import Line, filled_lines

_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class NotJson(NamedTuple):
    """What stands for a line that is not JSON; `reason` is one line of text."""

    reason: str


class Item(NamedTuple):
    """A value of a file, which may be a `NotJson`.

    Attributes:
      unit: "line", or "item" in an array or a table.
      number: the line's or the item's number, from 1.
      value: the value.
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
    first, second = (next(lines, None) for _ in range(2))
    if first is None:
        return Items([], False)
    value = parse(first.text)
    rest = itertools.chain([] if second is None else [second], lines)
    if isinstance(value, NotJson):
        return _whole([first, *rest], column)
    if second is None:
        return _document(value, first.number, column)
    values = (Item("line", line.number, parse(line.text)) for line in rest)
    return Items(itertools.chain([Item("line", first.number, value)], values), False)


def parse(text):
    """Returns the value of a JSON text, or a `NotJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return NotJson(" ".join(str(error).split()))


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
            return Items([Item("line", n, parse(line)) for n, line in lines], False)
        # An array with a fault, not lines of which each has one.
        number = getattr(error, "lineno", lines[0].number)
        return Items([Item("line", number, NotJson(" ".join(str(error).split())))], True)
    if len(values) == 1:
        return _document(values[0].text, values[0].number, column)
    return Items([Item("line", line.number, line.text) for line in values], False)


def _values(text):
    """Returns the values of a text, one after the other, each as `Line` with its first line."""
    values, number, end = [], 1, 0
    while (begin := _SPACE.match(text, end).end()) < len(text):
        number += text.count("\n", end, begin)
        value, end = _DECODER.raw_decode(text, begin)
        values.append(Line(number, value))
        number += text.count("\n", begin, end)
    return values


def _document(value, number, column):
    """Returns the `Items` of a file's only value, which begins at a line."""
    found = value if isinstance(value, list) else None
    if isinstance(value, dict) and column is not None:
        found = _rows_of_table(value, column)
    if not found:
        return Items([Item("line", number, value)], False)
    return Items([Item("item", n, row) for n, row in enumerate(found, 1)], isinstance(value, list))


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
