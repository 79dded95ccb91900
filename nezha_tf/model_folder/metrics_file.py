"""`metrics.jsonl`: the record of a run, an entry a line."""

import json
import os

METRICS_FILE = "metrics.jsonl"


def read_metrics(folder):
    """Returns the entries of a run's `metrics.jsonl` (list of dict), rising by step."""
    path = os.path.join(folder, METRICS_FILE)
    if not os.path.exists(path):
        return []
    entries = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                entries.append(json.loads(line))
            except ValueError:  # the last line of a run that was killed while it wrote
                break
    return entries
