"""What the runs of a script of examples/ came to, as tables in Markdown.

python examples/compare_starts.py out/understanding

The folder has TASK/START for each run: a task, and the weights that it started from. If several
objectives were pretrained, pretraining/OBJECTIVE are their runs, and have a table of their own.
"""

import json
import sys
from pathlib import Path

# The folder of a task, and what is told of it.
METRICS = {
    "sentiment": ("accuracy", "macro_f1"),
    "ocnli": ("accuracy", "macro_f1"),
    "people_daily_ner": ("f1", "precision", "recall"),
    "cmrc2018": ("f1", "em"),
    "translation": ("bleu", "rouge_l", "loss"),
}
OF_OBJECTIVES = ("loss", "accuracy", "majority_accuracy", "perplexity", "bits_per_character")


def main(folder):
    objectives = _subfolders(folder / "pretraining", with_file="eval_results.json")
    if objectives:
        _print_objectives(folder / "pretraining", objectives)
    tasks = [task for task in METRICS if (folder / task).is_dir()]
    if not tasks:
        sys.exit(f"compare_starts.py: error: no folder of a task in {folder}: run a script first")
    for task in tasks:
        _print_task(folder / task, METRICS[task])


def _print_objectives(folder, objectives):
    print("| objective | prediction |", *(f"{name.replace('_', ' ')} |" for name in OF_OBJECTIVES))
    print("| --- |" + " --- |" * (1 + len(OF_OBJECTIVES)))
    for objective in objectives:
        results = _read(folder / objective / "eval_results.json")
        for term in [name.removesuffix("_loss") for name in results if name.endswith("_loss")]:
            values = [results.get(f"{term}_{name}") for name in OF_OBJECTIVES]
            shown = " | ".join("" if value is None else f"{value:.4f}" for value in values)
            print(f"| {objective} | {term} | {shown} |")
    print()


def _print_task(folder, metrics):
    print(f"| {folder.name}, from | {' | '.join(metrics)} | seeds |")
    print("| --- |" + " --- |" * (1 + len(metrics)))
    for start in _subfolders(folder):
        scores, seeds = _scores(folder / start)
        values = " | ".join(_value(*scores[metric]) for metric in metrics)
        print(f"| {start} | {values} | {seeds} |")
    print()


def _subfolders(folder, with_file="*"):
    """Returns the names of folders that hold a file, random weights first."""
    found = [path.name for path in folder.glob("*/") if any(path.glob(with_file))]
    return sorted(found, key=lambda name: (name != "random", name))


def _scores(folder):
    """Returns ({metric: (mean, deviation or None)}, number of seeds) of a task from a start."""
    if not (folder / "sweep.json").exists():  # one seed
        return {
            name: (value, None) for name, value in _read(folder / "eval_results.json").items()
        }, 1
    sweep = _read(folder / "sweep.json")
    rate = sweep["rates"][0]
    names = {name: name.removeprefix("eval ") for name in rate["mean"]}
    found = {n: (rate["mean"][key], rate["standard_deviation"][key]) for key, n in names.items()}
    return found, len(sweep["runs"])


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"compare_starts.py: error: no {path}: this run has not ended")


def _value(mean, deviation):
    return f"{mean:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/compare_starts.py out/understanding")
    main(Path(sys.argv[1]))
