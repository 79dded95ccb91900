"""Reads `metrics.jsonl`: the metrics of a run, one entry per line."""

import json
import os

from nezha_tf import storage

METRICS_FILE = "metrics.jsonl"


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl`, a list of dict, by rising step."""
    path = os.path.join(folder, METRICS_FILE)
    if not storage.exists(path):
        return []
    entries = []
    with storage.open_text(path) as file:
        for line in file:
            try:
                entries.append(json.loads(line))
            except ValueError:  # a killed run can leave an incomplete last line
                break
    return entries
