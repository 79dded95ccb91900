"""Labelled text: JSON lines or columns parted by tabs, one example a line."""

import json
from typing import NamedTuple

from nezha_tf.data.corpus import read_lines
from nezha_tf.errors import UserError

JSON_LINES, COLUMNS = (".json", ".jsonl"), (".tsv", ".txt")


class Row(NamedTuple):
    """One example: dict of column name to text, and its file and line."""

    values: dict[str, str]
    path: str
    line: int

    @property
    def place(self):
        """File and line, for a message."""
        return f"{self.path}, line {self.line}"


def read_rows(path, columns, optional=()):
    """Yields the examples of a file, a `Row` each, without white space around their texts.

    Args:
      path: a UTF-8 file: `.json` or `.jsonl` with an object a line, or `.tsv` or `.txt` with the
        columns in their order, parted by tabs, without a header; each also with `.gz`.
      columns: names of the columns; other keys of an object are passed over.
      optional: those of the last columns that may be empty or missing; they are then not in
        `values`.

    Raises:
      UserError: the name of the file does not tell its kind, it cannot be read or holds no line,
        or the first line that is faulty.
    """
    name = path.removesuffix(".gz")
    if not name.endswith(JSON_LINES + COLUMNS):
        raise UserError(
            f"{path}: the name must end in {', '.join(JSON_LINES)} (JSON lines) or "
            f"{', '.join(COLUMNS)} (columns parted by tabs), with or without .gz"
        )
    parse = _parse_object if name.endswith(JSON_LINES) else _parse_columns
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        try:
            found = parse(line.strip("\r\n"), columns, len(columns) - len(optional))
            values = {column: _text(value, column) for column, value in found.items()}
            empty = [c for c in columns if c not in optional and not values.get(c)]
            if empty:
                raise _Fault(f"{empty[0]} is empty; give it a text, or delete the line")
        except _Fault as fault:
            raise UserError(f"{path}, line {number}: {fault}") from fault
        yield Row({column: value for column, value in values.items() if value}, path, number)
    if not number:
        raise UserError(f"{path} holds no line")


class _Fault(Exception):
    """What is wrong with a line."""


def _parse_object(line, columns, needed):
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Fault(f"no JSON ({error}); write one object a line") from error
    if not isinstance(found, dict):
        raise _Fault(f'no JSON object; write {{"{columns[0]}": ...}}')
    for column in columns[:needed]:
        if column not in found:
            raise _Fault(f'"{column}" is missing')
    # An optional one may be null, as programs write what they do not have.
    return {column: found[column] for column in columns if found.get(column) is not None}


def _parse_columns(line, columns, needed):
    texts = line.split("\t")
    if not needed <= len(texts) <= len(columns):
        raise _Fault(
            f"{len(texts)} columns parted by tabs, not {len(columns)} ({', '.join(columns)})"
        )
    return dict(zip(columns, texts, strict=False))


def _text(value, column):
    if not isinstance(value, str):
        raise _Fault(f'"{column}" is no text but {json.dumps(value)[:40]}')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Fault(f'"{column}" holds half a character (a lone \\ud800 to \\udfff)') from error
    return value.strip()
