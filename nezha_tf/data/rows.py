"""Labelled text: JSON lines, or columns parted by tabs or commas, one example a row."""

import csv
import json
from typing import NamedTuple

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.corpus import read_lines
from nezha_tf.errors import UserError

JSON_LINES, TABS, COMMAS = (".json", ".jsonl"), (".tsv", ".txt"), (".csv",)


class Row(NamedTuple):
    """One example: dict of column name to text, and its file and (first) line."""

    values: dict[str, str]
    path: str
    line: int

    @property
    def place(self):
        """File and line, for a message."""
        return f"{self.path}, line {self.line}"


def read_rows(path, columns, optional=(), file_columns=None, json_columns=(), bad_rows=None):
    """Yields the examples of a file, a `Row` each, without white space around their texts.

    Args:
      path: a UTF-8 file: `.json` or `.jsonl` with an object a line, `.tsv` or `.txt` with columns
        parted by tabs, without quoting, or `.csv` as RFC 4180 has it; each also with `.gz`.
      columns: names of the columns that are read; others are passed over.
      optional: those of them that may be empty, or missing at the end of a row or in an object;
        they are then not in `values`.
      file_columns: names of all columns of a file that has columns; () where its first line
        names them; `columns` if None. A first line that just repeats the names is passed over.
      json_columns: those whose value in an object may be another one than a text; it then comes
        as JSON.
      bad_rows: `BadRows`; None: the first bad row is an error.

    Raises:
      UserError: the name of the file does not tell its kind, it cannot be read, holds no row or
        lacks a column, or a bad row.
    """
    bad_rows = bad_rows or BadRows()
    names = columns if file_columns is None else file_columns
    rows = _Objects(columns, optional) if _is(path, JSON_LINES) else None
    is_empty = True
    for line, record in _records(path):
        try:
            if rows is None:
                rows = _Columns(columns, optional, names or record, _is(path, COMMAS))
                if rows.is_header(record):
                    continue
            is_empty = False
            found = rows.parse(record)
            values = {name: _text(v, name, name in json_columns) for name, v in found.items()}
            empty = [c for c in columns if c not in optional and not values.get(c)]
            if empty:
                raise _Fault(f"{empty[0]} is empty; give it a text, or delete the line")
        except _NoColumn as error:
            raise UserError(f"{path}, line {line}: {error}") from error
        except _Fault as fault:
            bad_rows.add(f"{path}, line {line}: {fault}")
            continue
        yield Row({column: value for column, value in values.items() if value}, path, line)
    if is_empty:
        raise UserError(f"{path} holds no line with an example")


class _Fault(Exception):
    """What is wrong with a row."""


class _NoColumn(Exception):
    """What is wrong with a header."""


class _Objects:
    """Rows that are objects of JSON."""

    def __init__(self, columns, optional):
        self._columns = columns
        self._needed = [column for column in columns if column not in optional]

    def parse(self, line):
        """Returns dict of column to value; raises `_Fault`."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _Fault(f"no JSON ({error}); write one object a line") from error
        if not isinstance(found, dict):
            raise _Fault(f'no JSON object; write {{"{self._columns[0]}": ...}}')
        for column in self._needed:
            if column not in found:
                raise _Fault(f'"{column}" is missing')
        # An optional one may be null, as programs write what they do not have.
        return {c: found[c] for c in self._columns if found.get(c) is not None}


class _Columns:
    """Rows that are columns, of which a header or the caller has told the names."""

    def __init__(self, columns, optional, names, by_comma):
        if isinstance(names, _Fault):
            raise _NoColumn(names)
        self._columns = columns
        self._names = [name.strip() for name in names]
        self._parted_by = "commas" if by_comma else "tabs"
        self._least = len(self._names)
        while self._least and self._names[self._least - 1] in optional:
            self._least -= 1
        # The name of a column may hold the end of a line, but a message is one line.
        self._told = ", ".join(" ".join(name.split()) for name in self._names)
        for column in columns:
            count = self._names.count(column)
            if not count and column not in optional:
                raise _NoColumn(f"no column {column!r}; the columns are {self._told}")
            if count > 1:
                raise _NoColumn(f"{count} columns {column!r}; the columns are {self._told}")

    def is_header(self, record):
        """Whether a row is the names of the columns."""
        return not isinstance(record, _Fault) and [v.strip() for v in record] == self._names

    def parse(self, record):
        """Returns dict of column to text; raises `_Fault`."""
        if isinstance(record, _Fault):
            raise record
        if not self._least <= len(record) <= len(self._names):
            raise _Fault(
                f"{len(record)} columns parted by {self._parted_by}, not {len(self._names)} "
                f"({self._told})"
            )
        found = dict(zip(self._names, record, strict=False))
        return {column: found[column] for column in self._columns if column in found}


def _is(path, endings):
    return path.removesuffix(".gz").endswith(endings)


def _records(path):
    """Yields (line, text of the line or list of columns) of a file by its kind."""
    if _is(path, COMMAS):
        return _quoted(read_lines(path))
    lines = ((number, line.strip("\r\n")) for number, line in enumerate(read_lines(path), 1))
    if _is(path, JSON_LINES):
        return lines
    if _is(path, TABS):
        return ((number, line.split("\t")) for number, line in lines)
    endings = ", ".join(JSON_LINES), ", ".join(TABS), COMMAS[0]
    raise UserError(
        f"{path}: the name must end in {endings[0]} (JSON lines), {endings[1]} (columns parted by "
        f"tabs) or {endings[2]} (by commas), with or without .gz"
    )


def _quoted(lines):
    """Yields (line that a row begins on, list of columns, or a `_Fault`) of CSV."""
    reader = csv.reader(lines, strict=True)
    while True:
        first = reader.line_num + 1
        try:
            yield first, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield first, _Fault(f"no CSV ({error}); double the quotes inside of quotes")


def json_text(value):
    """Returns a value of JSON as text; 1 and 1.0 are one number, and one text."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _text(value, column, may_be_json):
    if not isinstance(value, str):
        text = json_text(value)
        if not may_be_json:
            raise _Fault(f'"{column}" is no text but {json.dumps(value)[:40]}')
        value = text
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f'"{column}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value.strip()
