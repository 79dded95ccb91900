"""Reads the values of a JSON file: one on each line, or all in an array."""

import json
from typing import NamedTuple

from nezha_tf.data.corpus import read_lines


class NotJson(NamedTuple):
    """What stands for a line that is not JSON; `reason` is one line of text."""

    reason: str


class Items(NamedTuple):
    """The values of a file.

    Attributes:
      values: list of (place, value); a place is "line 3" or, in an array, "item 3". A value may be
        a `NotJson`.
      is_array: whether the file is one array.
      num_blank: number of blank lines between the values.
    """

    values: list[tuple[str, object]]
    is_array: bool
    num_blank: int


def read_items(path):
    """Returns the `Items` of a UTF-8 file (or `.gz`).

    A file that is one JSON text, on however many lines, is an array of values or the only value.

    Raises:
      UserError: the file cannot be read or is not UTF-8.
    """
    lines = list(read_lines(path))
    whole = parse("".join(lines))
    if isinstance(whole, list) and whole:
        return Items([(f"item {n}", value) for n, value in enumerate(whole, 1)], True, 0)
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    num_blank = len(lines) - len(filled)
    if filled and not isinstance(whole, NotJson):
        return Items([(f"line {filled[0][0]}", whole)], False, 0)
    if filled and filled[0][1].lstrip().startswith("[") and _is_not_json(filled[0][1]):
        # An array with a fault, not lines of which each has one.
        return Items([("the array", whole)], True, 0)
    return Items([(f"line {n}", parse(line)) for n, line in filled], False, num_blank)


def parse(text):
    """Returns the value of a JSON text, or a `NotJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return NotJson(" ".join(str(error).split()))


def _is_not_json(text):
    return isinstance(parse(text), NotJson)
