"""The lines of the files of tasks: all are numbered, and blank ones are passed over and counted."""

from typing import NamedTuple

from nezha_tf.data.corpus import read_lines
from nezha_tf.text.characters import is_blank


class Line(NamedTuple):
    """A line without its end, and its number, from 1."""

    number: int
    text: str


def whole_lines(path):
    """Yields the lines of a file with their ends.

    Lines end in LF or CR LF. In a file without any LF they end in CR, as old programs for the Mac
    write tables.

    Args:
      path: a UTF-8 file, also packed; see `read_lines`.

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


def numbered_lines(path):
    """Yields the `Line`s of a file; see `whole_lines`."""
    for number, line in enumerate(whole_lines(path), start=1):
        yield Line(number, line.rstrip("\r\n"))


def filled_lines(path, bad_rows):
    """Yields the `Line`s of a file that show something; see `whole_lines`.

    Args:
      path: the file.
      bad_rows: `BadRows` that counts the others.
    """
    for line in numbered_lines(path):
        if is_blank(line.text):
            bad_rows.pass_blank(f"{path}, line {line.number}")
        else:
            yield line
