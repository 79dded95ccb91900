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
        scores = [_scores(Path(folder) / task / start) for start in STARTS]
        for metric in metrics:
            values = " | ".join(_value(*score[metric]) for score, _ in scores)
            print(f"| {task} | {metric} | {values} | {scores[0][1]} |")


def _scores(folder):
    """Returns ({metric: (mean, deviation or None)}, number of seeds) of a task from a start."""
    try:
        if not (folder / "sweep.json").exists():  # one seed
            results = json.loads((folder / "eval_results.json").read_text(encoding="utf-8"))
            return {name: (value, None) for name, value in results.items()}, 1
        sweep = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        sys.exit(f"compare_starts.py: error: no {error.filename}; run examples/understanding.sh")
    rate = sweep["rates"][0]
    names = {name: name.removeprefix("eval ") for name in rate["mean"]}
    found = {n: (rate["mean"][key], rate["standard_deviation"][key]) for key, n in names.items()}
    return found, len(sweep["runs"])


def _value(mean, deviation):
    return f"{mean:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/compare_starts.py out/understanding")
    main(sys.argv[1])
