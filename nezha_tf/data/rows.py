"""Reads labelled text: JSON, or columns separated by tabs or commas, one example per row."""

import csv
import json
from typing import NamedTuple

from nezha_tf.data.compression import bare_name
from nezha_tf.data.json_items import Item, read_items
from nezha_tf.data.lines import BadRows, RowFault, filled_lines, is_text, whole_lines
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError

JSON, TABS, COMMAS = (".json", ".jsonl", ".ndjson"), (".tsv", ".txt", ".data"), (".csv",)
# The most that csv takes on every system; its own limit is 131,072.
MOST_CHARACTERS_OF_A_CELL = 2**31 - 1
BYTE_ORDER_MARK = "\ufeff"
PAIR = ("src", "tgt")


class Row(NamedTuple):
    """One example.

    Attributes:
      values: dict of column name to text.
      path: its file.
      line, unit: the number of its first line and "line"; in an array or a table of JSON, that of
        the item and "item"; from 1.
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
    header, is_json, is_empty = None, _is(path, JSON), True
    for unit, line, record in _records(path, bad_rows, needed[0]):
        row = Row({}, path, line, unit)
        if not is_json:
            header = header or _header(row.place, record, columns, needed, names)
            if not isinstance(record, RowFault) and _names_of(record) == header:
                # In files that were joined, that may be any row.
                continue
        is_empty = False
        try:
            if isinstance(record, RowFault):
                raise record
            if is_json:
                found = _of_object(record, columns, needed)
            else:
                found = _of_cells(record, header, columns, needed, _is(path, COMMAS))
            values = {name: _text(v, name, name in json_columns) for name, v in found.items()}
            values = {n: v if n in as_written else v.strip() for n, v in values.items()}
            values = {n: v for n, v in values.items() if v or n in may_be_empty}
            empty = [column for column in needed if column not in values]
            if empty:
                raise RowFault(f"{empty[0]} is empty; write a text, or delete the line")
        except RowFault as fault:
            bad_rows.add(f"{row.place}: {fault}")
        else:
            yield row._replace(values=values)
    if is_empty:
        raise UserError(f"{path} has no line with an example")


def renamed(rows, names):
    """Yields `Row`s whose columns have other names, by a dict of each name to its new one."""
    for row in rows:
        yield row._replace(values={names[name]: value for name, value in row.values.items()})


def read_pairs(paths, columns=PAIR, optional=(), bad_rows=None):
    """Returns the pairs of source and target of files: list of `Row` with "src" and "tgt".

    Args:
      paths: files as for `read_rows`. The columns of a `.tsv` or `.txt` file are `src` and `tgt`,
        in this order, unless its first line names them; if `columns` has other names, it must.
      columns: the names of the columns of sources and of targets in the files.
      optional: ("tgt",) if targets may be missing.
      bad_rows: as for `read_rows`.
    """
    names = dict(zip(columns, PAIR, strict=True))
    if len(names) < len(PAIR):
        raise UserError(
            f"--source_column and --target_column are both {columns[0]}; name another one"
        )
    optional = tuple(name for name, role in names.items() if role in optional)
    file_columns = PAIR if set(columns) == set(PAIR) else ()
    files = (read_rows(path, columns, optional, file_columns, bad_rows=bad_rows) for path in paths)
    return [row for rows in files for row in renamed(rows, names)]


def _is(path, endings):
    return bare_name(path).endswith(endings)


def _records(path, bad_rows, column):
    """Returns an iterable of `Item`: a value of JSON, a list of cells, or a `RowFault`."""
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


def _names_of(record):
    return [cell.lstrip(BYTE_ORDER_MARK).strip() for cell in record]


def _header(place, first, columns, needed, names):
    """Returns the names of a file's columns, by its first row or as the caller says."""
    if isinstance(first, RowFault):
        if not names:
            raise UserError(f"{place}: {first}") from first
    elif not names or set(needed) <= set(_names_of(first)):
        names = _names_of(first)
    for column in columns:
        count = list(names).count(column)
        if count > 1 or (not count and column in needed):
            what = f"{count} columns" if count else "there is no column"
            raise UserError(
                f"{place}: {what} {column!r}; the columns are {_joined(names)}"
                + _advice(needed) * (not set(needed) & set(names))
            )
    return list(names)


def _advice(needed):
    names = ",".join(needed)
    return (
        "; if this line is an example, write a line of names above it (run_classifier.py also "
        f"takes --columns={names})"
    )


def _joined(names):
    # A message is one line, but a name in CSV may have several, and a text without names is long.
    names = (" ".join(name.split()) for name in names)
    return ", ".join(name if len(name) <= 30 else f"{name[:30]}…" for name in names)


def _of_cells(cells, header, columns, needed, is_csv):
    """Returns a dict of column to text; what is optional may lack at the end."""
    least = len(header)
    while least and header[least - 1] in columns and header[least - 1] not in needed:
        least -= 1
    if not least <= len(cells) <= len(header):
        raise RowFault(
            f"{len(cells)} columns separated by {'commas' if is_csv else 'tabs'}, not "
            f"{len(header)} ({_joined(header)})"
        )
    found = dict(zip(header, cells, strict=False))
    return {column: found[column] for column in columns if column in found}


def _of_object(value, columns, needed):
    """Returns a dict of column to value; many programs write null for what is missing."""
    if not isinstance(value, dict):
        raise RowFault(f'not a JSON object; write {{"{columns[0]}": ...}}')
    for column in needed:
        if column not in value:
            raise RowFault(f'"{column}" is missing')
    return {column: value[column] for column in columns if value.get(column) is not None}


def json_text(value):
    """Returns a JSON value as text; 1 and 1.0 are the same number and give the same text."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _text(value, column, may_be_json):
    if not isinstance(value, str):
        if not may_be_json:
            raise RowFault(f'"{column}" must be a string, not {json.dumps(value)[:40]}')
        value = json_text(value)
    if not is_text(value):
        raise RowFault(f'"{column}" holds half a character (a lone \\ud800 to \\udfff)')
    return value
