"""Writes files of predictions: JSON lines, or columns separated by tabs, with a header."""

import json
import os

from nezha_tf.util import files


def write_predictions(folder, file_format, entries):
    """Writes `predictions.jsonl` or `predictions.tsv` into a folder; returns its path.

    Args:
      folder: the folder to write to.
      file_format: "jsonl" or "tsv".
      entries: list of a dict for each example, with values that are texts, numbers, lists or
        dicts; None is left out. In "tsv", a dict of floats has a column for each value
        (`probabilities/positive`), other lists and dicts are written as JSON, and white space
        inside a text becomes a single space.
    """
    entries = [_rounded({n: v for n, v in entry.items() if v is not None}) for entry in entries]
    if file_format == "jsonl":
        lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    else:
        lines = _columns(entries)
    path = os.path.join(folder, f"predictions.{file_format}")
    files.write_text(path, "".join(f"{line}\n" for line in lines))
    return path


def _columns(entries):
    rows = [dict(_cells(entry)) for entry in entries]
    # In the order of their first occurrence.
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield "\t".join(map(_flat, names))
    for row in rows:
        yield "\t".join(row.get(name, "") for name in names)


def _cells(entry):
    """Yields (name, text) for each column of an entry."""
    for name, value in entry.items():
        if isinstance(value, dict) and all(isinstance(part, float) for part in value.values()):
            yield from ((f"{name}/{key}", str(part)) for key, part in value.items())
        elif isinstance(value, list | dict):
            yield name, json.dumps(value, ensure_ascii=False)
        else:
            yield name, _flat(str(value))


def _flat(text):
    return " ".join(text.split())


def _rounded(value):
    """Returns a value with its floats rounded to six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
