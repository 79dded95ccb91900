"""Reads labelled text: JSON, or columns separated by tabs or commas, one example per row."""

import csv
import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows, RowFault
from nezha_tf.data.compression import bare_name
from nezha_tf.data.json_items import Item, NotJson, read_items
from nezha_tf.data.lines import filled_lines, whole_lines
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError

JSON, TABS, COMMAS = (".json", ".jsonl", ".ndjson"), (".tsv", ".txt", ".data"), (".csv",)
# The most that csv takes on every system; its own limit is 131,072.
MOST_CHARACTERS_OF_A_CELL = 2**31 - 1
BYTE_ORDER_MARK = "\ufeff"


class Row(NamedTuple):
    """One example.

    Attributes:
      values: dict of column name to text.
      path: its file.
      line: the number of its first line; in an array or a table of JSON, of the item; from 1.
      unit: "line" or "item".
    """

    values: dict[str, str]
    path: str
    line: int
    unit: str = "line"

    @property
    def place(self):
        """File and number, for messages."""
        return f"{self.path}, {self.unit} {self.line}"


def read_rows(
    path,
    columns,
    optional=(),
    file_columns=None,
    json_columns=(),
    bad_rows=None,
    as_written=(),
    may_be_empty=(),
):
    """Yields the examples of a file as `Row`s; white space at the ends of texts is removed.

    Blank rows are passed over: lines of white space and invisible characters, and rows of empty
    cells.

    Args:
      path: a UTF-8 file: `.json`, `.jsonl` or `.ndjson` with one object per line, an array of
        objects or a table of pandas (see `read_items`); `.tsv`, `.txt` or `.data` with columns
        separated by tabs, without quoting; or `.csv` (RFC 4180); in any case, also packed.
      columns: names of the columns to read; others are ignored.
      optional: the columns that may be empty, or missing in an object or at the end of a row;
        then they are not in `values`.
      file_columns: names of all columns of a `.tsv`, `.txt` or `.csv` file; (): the first line
        names them; None: they are `columns`. A first line with the names of all columns that must
        be there names them in any case, as it has their order.
      json_columns: the columns whose value in an object need not be a string; such a value is
        returned as JSON text.
      bad_rows: `BadRows` that collects the faults and counts blank rows; None: the first bad row
        is an error.
      as_written: the columns whose white space at the ends is kept.
      may_be_empty: the columns that must be there, but whose text may be empty; then it is "" in
        `values`.

    Raises:
      UserError: the file's name has an unknown ending; the file cannot be read, has no row, or
        lacks a column; or a row is bad.
    """
    bad_rows = bad_rows or BadRows()
    names = columns if file_columns is None else file_columns
    needed = [column for column in columns if column not in optional]
    rows = _Objects(columns, optional) if _is(path, JSON) else None
    is_empty = True
    for unit, line, record in _records(path, bad_rows, needed[0]):
        row = Row({}, path, line, unit)
        try:
            if rows is None:
                if not names or _has(record, needed):
                    names = record
                rows = _Columns(columns, optional, names, _is(path, COMMAS))
            if rows.is_header(record):
                continue
            is_empty = False
            found = rows.parse(record)
            values = {name: _text(v, name, name in json_columns) for name, v in found.items()}
            values = {n: v if n in as_written else v.strip() for n, v in values.items()}
            # A value of null is not there.
            values = {n: v for n, v in values.items() if v or n in may_be_empty}
            empty = [c for c in columns if c not in optional and c not in values]
            if empty:
                raise RowFault(f"{empty[0]} is empty; write a text, or delete the line")
        except _NoColumn as error:
            raise UserError(f"{row.place}: {error}") from error
        except RowFault as fault:
            bad_rows.add(f"{row.place}: {fault}")
            continue
        yield row._replace(values=values)
    if is_empty:
        raise UserError(f"{path} has no line with an example")


def _has(record, names):
    """Whether a row's cells have all names."""
    return not isinstance(record, RowFault) and set(names) <= set(_names_of(record))


def _names_of(record):
    """Returns the cells of a row as names of columns, a list."""
    return [cell.lstrip(BYTE_ORDER_MARK).strip() for cell in record]


def renamed(rows, names):
    """Yields rows whose columns have other names.

    Args:
      rows: iterable of `Row`.
      names: dict of each column's name to its new one.
    """
    for row in rows:
        yield row._replace(values={names[name]: value for name, value in row.values.items()})


class _NoColumn(Exception):
    """An error in a header."""


class _Objects:
    """Parses rows that are JSON objects."""

    def __init__(self, columns, optional):
        self._columns = columns
        self._needed = [column for column in columns if column not in optional]

    def is_header(self, found):
        return False

    def parse(self, found):
        """Returns dict of column to value; raises `RowFault`."""
        if isinstance(found, NotJson):
            raise RowFault(f"not JSON ({found.reason}); write one object per line, or one array")
        if not isinstance(found, dict):
            raise RowFault(f'not a JSON object; write {{"{self._columns[0]}": ...}}')
        for column in self._needed:
            if column not in found:
                raise RowFault(f'"{column}" is missing')
        # Many programs write null for a missing optional value.
        return {c: found[c] for c in self._columns if found.get(c) is not None}


class _Columns:
    """Parses rows of columns; their names come from the header or from the caller."""

    def __init__(self, columns, optional, names, by_comma):
        if isinstance(names, RowFault):
            raise _NoColumn(names)
        self._columns = columns
        self._names = _names_of(names)
        self._parted_by = "commas" if by_comma else "tabs"
        self._least = len(self._names)
        while self._least and self._names[self._least - 1] in optional:
            self._least -= 1
        # In CSV, the name of a column may contain a line break; a message must be one line.
        self._told = ", ".join(" ".join(name.split()) for name in self._names)
        for column in columns:
            count = self._names.count(column)
            if not count and column not in optional:
                raise _NoColumn(f"there is no column {column!r}; the columns are {self._told}")
            if count > 1:
                raise _NoColumn(f"{count} columns {column!r}; the columns are {self._told}")

    def is_header(self, record):
        """Whether a row consists of the names of the columns.

        In files that were joined, that may be any row, with a byte order mark before it.
        """
        return not isinstance(record, RowFault) and _names_of(record) == self._names

    def parse(self, record):
        """Returns dict of column to text; raises `RowFault`."""
        if isinstance(record, RowFault):
            raise record
        if not self._least <= len(record) <= len(self._names):
            raise RowFault(
                f"{len(record)} columns separated by {self._parted_by}, not {len(self._names)} "
                f"({self._told})"
            )
        found = dict(zip(self._names, record, strict=False))
        return {column: found[column] for column in self._columns if column in found}


def _is(path, endings):
    return bare_name(path).endswith(endings)


def _records(path, bad_rows, column):
    """Returns an iterable of (unit, number, value or list of cells or a `RowFault`); see `Item`."""
    if _is(path, JSON):
        return read_items(path, bad_rows, column).values
    if _is(path, TABS):
        lines = filled_lines(path, bad_rows)
        return (Item("line", number, text.split("\t")) for number, text in lines)
    if _is(path, COMMAS):
        return _quoted(path, bad_rows)
    raise UserError(
        f"{path}: the name must end in {', '.join(JSON)} (JSON), {', '.join(TABS)} (columns "
        f"separated by tabs) or {COMMAS[0]} (by commas), with or without .gz"
    )


def _quoted(path, bad_rows):
    """Yields the rows of a CSV file that are not blank; see `_records`."""
    csv.field_size_limit(MOST_CHARACTERS_OF_A_CELL)
    reader = csv.reader(whole_lines(path), strict=True)
    while True:
        first = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            record = RowFault(f"not CSV ({error}); double the quotes inside of quotes")
        if not isinstance(record, RowFault) and all(map(is_blank, record)):
            bad_rows.pass_blank(f"{path}, line {first}")
        else:
            yield Item("line", first, record)


def json_text(value):
    """Returns a JSON value as text; 1 and 1.0 are the same number and give the same text."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _text(value, column, may_be_json):
    if not isinstance(value, str):
        text = json_text(value)
        if not may_be_json:
            raise RowFault(f'"{column}" must be a string, not {json.dumps(value)[:40]}')
        value = text
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RowFault(f'"{column}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value
