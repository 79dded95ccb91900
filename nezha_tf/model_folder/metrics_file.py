"""Reads `metrics.jsonl`: the metrics of a run, one entry per line."""

import json
import os

METRICS_FILE = "metrics.jsonl"


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl`, a list of dict, by rising step."""
    path = os.path.join(folder, METRICS_FILE)
    if not os.path.exists(path):
        return []
    entries = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                entries.append(json.loads(line))
            except ValueError:  # a killed run can leave an incomplete last line
                break
    return entries
