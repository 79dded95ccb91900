"""Files of predictions: lines of JSON, or columns parted by tabs under a header."""

import json
import os

from nezha_tf import files


def write_predictions(folder, file_format, entries):
    """Writes `predictions.jsonl` or `predictions.tsv`.

    Args:
      folder: where.
      file_format: "jsonl" or "tsv".
      entries: a dict for each example, of texts, numbers, lists or dicts; None is left out. In
        columns, a dict of numbers has a column for each (`probabilities/positive`), other lists
        and dicts stand as JSON, and white space within a text is a space.

    Returns:
      The path.
    """
    entries = [_rounded(entry) for entry in entries]
    lines = _objects(entries) if file_format == "jsonl" else _columns(entries)
    path = os.path.join(folder, f"predictions.{file_format}")
    files.write_text(path, "".join(f"{line}\n" for line in lines))
    return path


def _objects(entries):
    for entry in entries:
        found = {name: value for name, value in entry.items() if value is not None}
        yield json.dumps(found, ensure_ascii=False)


def _columns(entries):
    rows = [dict(_cells(entry)) for entry in entries]
    # As they stand in the first entry that has them.
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield "\t".join(map(_flat, names))
    for row in rows:
        yield "\t".join(row.get(name, "") for name in names)


def _cells(entry):
    """Yields (name of a column, its text) of an entry."""
    for name, value in entry.items():
        if isinstance(value, dict) and all(isinstance(part, float) for part in value.values()):
            yield from ((f"{name}/{key}", str(part)) for key, part in value.items())
        elif isinstance(value, list | dict):
            yield name, json.dumps(value, ensure_ascii=False)
        elif value is not None:
            yield name, _flat(str(value))


def _flat(text):
    return " ".join(text.split())


def _rounded(value):
    """Returns a value with its numbers cut to six digits, more than float32 can tell."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
