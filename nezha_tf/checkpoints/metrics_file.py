"""Reads `metrics.jsonl`: the metrics of a run, one entry per line."""

import json
import os

from nezha_tf.util import forms, storage
from nezha_tf.util.errors import UserError

METRICS_FILE = "metrics.jsonl"
_ENTRY = {"step": forms.is_count, str: forms.is_number}


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl`, a list of dict, by rising step.

    Raises:
      UserError: a line is not as runs write it. The last one may be incomplete, as a killed run
        leaves it, and then does not count.
    """
    path = os.path.join(folder, METRICS_FILE)
    if not storage.exists(path):
        return []
    with storage.open_binary(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number == len(lines) and not line.endswith(b"\n"):
                break
            raise UserError(
                f"{path}, line {number}: not JSON; restore the file, or remove the line"
            ) from error
        forms.require(entries[-1], _ENTRY, f"{path}, line {number}")
    return entries
