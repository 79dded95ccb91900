"""Reads labelled text: JSON lines, or columns separated by tabs or commas, one example per row."""

import csv
import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.corpus import read_lines
from nezha_tf.errors import UserError

JSON_LINES, TABS, COMMAS = (".json", ".jsonl"), (".tsv", ".txt"), (".csv",)


class Row(NamedTuple):
    """One example: a dict of column name to text, its file, and the number of its first line."""

    values: dict[str, str]
    path: str
    line: int

    @property
    def place(self):
        """File and line number, for messages."""
        return f"{self.path}, line {self.line}"


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

    Args:
      path: a UTF-8 file: `.json` or `.jsonl` with one object per line; `.tsv` or `.txt` with
        columns separated by tabs, without quoting; or `.csv` (RFC 4180); each also with `.gz`.
      columns: names of the columns to read; others are ignored.
      optional: the columns that may be empty, or missing in an object or at the end of a row;
        then they are not in `values`.
      file_columns: names of all columns of a `.tsv`, `.txt` or `.csv` file; (): the first line
        names them; None: they are `columns`. A first line with the names of all columns that must
        be there names them in any case, as it has their order.
      json_columns: the columns whose value in an object need not be a string; such a value is
        returned as JSON text.
      bad_rows: `BadRows` that collects the faults; None: the first bad row is an error.
      as_written: the columns whose white space at the ends is kept.
      may_be_empty: the columns that must be there, but whose text may be empty; then it is "" in
        `values`.

    Raises:
      UserError: the file's name has an unknown ending; the file cannot be read, has no row, or
        lacks a column; or a row is bad.
    """
    bad_rows = bad_rows or BadRows()
    names = columns if file_columns is None else file_columns
    needed = {column for column in columns if column not in optional}
    rows = _Objects(columns, optional) if _is(path, JSON_LINES) else None
    is_empty = True
    for line, record in _records(path):
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
                raise _Fault(f"{empty[0]} is empty; write a text, or delete the line")
        except _NoColumn as error:
            raise UserError(f"{path}, line {line}: {error}") from error
        except _Fault as fault:
            bad_rows.add(f"{path}, line {line}: {fault}")
            continue
        yield Row(values, path, line)
    if is_empty:
        raise UserError(f"{path} has no line with an example")


def _has(record, names):
    """Whether a row's cells have all names."""
    return not isinstance(record, _Fault) and names <= {cell.strip() for cell in record}


def renamed(rows, names):
    """Yields rows whose columns have other names.

    Args:
      rows: iterable of `Row`.
      names: dict of each column's name to its new one.
    """
    for row in rows:
        yield row._replace(values={names[name]: value for name, value in row.values.items()})


class _Fault(Exception):
    """An error in a row."""


class _NoColumn(Exception):
    """An error in a header."""


class _Objects:
    """Parses rows that are JSON objects."""

    def __init__(self, columns, optional):
        self._columns = columns
        self._needed = [column for column in columns if column not in optional]

    def parse(self, line):
        """Returns dict of column to value; raises `_Fault`."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _Fault(f"not JSON ({error}); write one object per line") from error
        if not isinstance(found, dict):
            raise _Fault(f'not a JSON object; write {{"{self._columns[0]}": ...}}')
        for column in self._needed:
            if column not in found:
                raise _Fault(f'"{column}" is missing')
        # Many programs write null for a missing optional value.
        return {c: found[c] for c in self._columns if found.get(c) is not None}


class _Columns:
    """Parses rows of columns; their names come from the header or from the caller."""

    def __init__(self, columns, optional, names, by_comma):
        if isinstance(names, _Fault):
            raise _NoColumn(names)
        self._columns = columns
        self._names = [name.strip() for name in names]
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
        """Whether a row consists of the names of the columns."""
        return not isinstance(record, _Fault) and [v.strip() for v in record] == self._names

    def parse(self, record):
        """Returns dict of column to text; raises `_Fault`."""
        if isinstance(record, _Fault):
            raise record
        if not self._least <= len(record) <= len(self._names):
            raise _Fault(
                f"{len(record)} columns separated by {self._parted_by}, not {len(self._names)} "
                f"({self._told})"
            )
        found = dict(zip(self._names, record, strict=False))
        return {column: found[column] for column in self._columns if column in found}


def _is(path, endings):
    return path.removesuffix(".gz").endswith(endings)


def _records(path):
    """Yields (line number, text of the line or list of columns), by the file's ending."""
    if _is(path, COMMAS):
        return _quoted(read_lines(path))
    lines = ((number, line.strip("\r\n")) for number, line in enumerate(read_lines(path), 1))
    if _is(path, JSON_LINES):
        return lines
    if _is(path, TABS):
        return ((number, line.split("\t")) for number, line in lines)
    endings = ", ".join(JSON_LINES), ", ".join(TABS), COMMAS[0]
    raise UserError(
        f"{path}: the name must end in {endings[0]} (JSON lines), {endings[1]} (columns separated "
        f"by tabs) or {endings[2]} (by commas), with or without .gz"
    )


def _quoted(lines):
    """Yields (first line of a row, list of its columns or a `_Fault`) of a CSV file."""
    reader = csv.reader(lines, strict=True)
    while True:
        first = reader.line_num + 1
        try:
            yield first, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield first, _Fault(f"not CSV ({error}); double the quotes inside of quotes")


def json_text(value):
    """Returns a JSON value as text; 1 and 1.0 are the same number and give the same text."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _text(value, column, may_be_json):
    if not isinstance(value, str):
        text = json_text(value)
        if not may_be_json:
            raise _Fault(f'"{column}" must be a string, not {json.dumps(value)[:40]}')
        value = text
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f'"{column}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value
