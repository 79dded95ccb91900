"""What the runs of examples/understanding.sh came to, as a table in Markdown.

python examples/compare_starts.py out/understanding
"""

import json
import sys
from pathlib import Path

STARTS = ("random", "pretrained")
# The folder of a task, and what is told of it.
METRICS = {
    "sentiment": ("accuracy", "macro_f1"),
    "ocnli": ("accuracy", "macro_f1"),
    "people_daily_ner": ("f1", "precision", "recall"),
    "cmrc2018": ("f1", "em"),
}


def main(folder):
    print(f"| task | metric | {' | '.join(STARTS)} | seeds |")
    print("| --- | --- | --- | --- | --- |")
    for task, metrics in METRICS.items():
        sweeps = [_read(Path(folder) / task / start / "sweep.json") for start in STARTS]
        for metric in metrics:
            values = " | ".join(_value(sweep["rates"][0], f"eval {metric}") for sweep in sweeps)
            print(f"| {task} | {metric} | {values} | {len(sweeps[0]['runs'])} |")


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"compare_starts.py: error: no {path}; run examples/understanding.sh first")


def _value(rate, name):
    deviation = rate["standard_deviation"][name]
    return f"{rate['mean'][name]:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/compare_starts.py out/understanding")
    main(sys.argv[1])
