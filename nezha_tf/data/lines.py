"""The lines of the files of tasks, numbered; blank ones and bad rows are counted."""

from typing import NamedTuple

from nezha_tf.data.corpus import read_lines
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError


class RowFault(Exception):
    """An error in a row: one line that says what is wrong, without the place.

    `part` is the part of the row that is faulty, where that is known.
    """

    def __init__(self, text, part=None):
        super().__init__(text)
        self.part = part


class BadRows:
    """Collects the faults of rows, and counts blank lines, which are no fault.

    Attributes:
      count, first: the number of skipped rows, and the first fault or None.
      num_blank, first_blank: the number of blank lines, and file and number of the first or None.
    """

    def __init__(self, skip=False):
        """`skip`: whether bad rows are skipped; if False, the first one is an error."""
        self._skip = skip
        self.count, self.first = 0, None
        self.num_blank, self.first_blank = 0, None

    def add(self, fault):
        """Adds a fault, one line of text with file and line number, or raises a `UserError`."""
        if not self._skip:
            raise UserError(fault)
        self.first = self.first or fault
        self.count += 1

    def pass_blank(self, place):
        """Counts a blank line, which is passed over; `place` names file and line."""
        self.num_blank += 1
        self.first_blank = self.first_blank or place

    def note(self):
        """Returns clauses on what was skipped or passed over for the end of a message, or ""."""
        bad = f"; bad rows skipped: {self.count:,} (the first: {self.first})"
        blank = f"; blank lines passed over: {self.num_blank:,} (the first: {self.first_blank})"
        return bad * bool(self.count) + blank * bool(self.num_blank)


class Line(NamedTuple):
    """A line without its end, and its number, from 1."""

    number: int
    text: str


def whole_lines(path):
    """Yields the lines of a UTF-8 file, also packed, with their ends.

    Lines end in LF or CR LF. In a file without any LF they end in CR, as old programs for the Mac
    write tables.

    Raises:
      UserError: the file cannot be read or is not UTF-8.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1 and not line.endswith("\n"):
            parts = line.split("\r")
            yield from (f"{part}\r" for part in parts[:-1])
            line = parts[-1]
        if line:
            yield line


def filled_lines(path, bad_rows):
    """Yields the `Line`s of a file that show something; `BadRows` counts the others."""
    for number, line in enumerate(whole_lines(path), start=1):
        if is_blank(line):
            bad_rows.pass_blank(f"{path}, line {number}")
        else:
            yield Line(number, line.rstrip("\r\n"))


def is_text(value):
    """Whether a str holds whole characters alone: no lone \\ud800 to \\udfff."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def require_text(value, name):
    """Returns a value if it is a text that shows something; else raises a `RowFault`."""
    if not isinstance(value, str):
        raise RowFault(f"{name} is missing or not a text")
    if not value.strip():
        raise RowFault(f"{name} is empty")
    if not is_text(value):
        raise RowFault(f"{name} holds half a character (a lone \\ud800 to \\udfff)")
    return value
