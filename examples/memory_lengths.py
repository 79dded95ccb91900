"""The perplexities that examples/memory.sh found: a table in Markdown, and a picture.

python examples/memory_lengths.py out/memory

FOLDER/with and FOLDER/without are runs, trained with a memory and without one, and hold
memory_LENGTH.json for each length that they were evaluated with. FOLDER/memory.png is the picture
and needs matplotlib: pip install -e '.[plot]'.
"""

import json
import sys
from pathlib import Path

try:
    from nezha_tf.util import files
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

RUNS = {"with": "trained with a memory", "without": "trained without one"}


def main(folder):
    found = {name: perplexities(folder / name) for name in RUNS}
    lengths = sorted(set.union(*map(set, found.values())))
    if not lengths:
        sys.exit(f"memory_lengths.py: error: no figures in {folder}: run examples/memory.sh")
    print(f"| tokens remembered | {' | '.join(RUNS.values())} |")
    print("| --- |" + " --- |" * len(RUNS))
    for length in lengths:
        values = (found[name].get(length) for name in RUNS)
        print(f"| {length} |", *("- |" if value is None else f"{value:.2f} |" for value in values))
    draw(found, folder / "memory.png")


def perplexities(folder):
    """Returns a dict of the memory's length to the held-out perplexity of a run."""
    found = {}
    for path in folder.glob("memory_*.json"):
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
            found[int(path.stem.removeprefix("memory_"))] = results["next_token_perplexity"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(
                f"memory_lengths.py: error: {path} has no next_token_perplexity ({error!r}); "
                "remove it, and run examples/memory.sh"
            )
    return found


def draw(found, path):
    """Draws the perplexities of runs, dict of run to {length: perplexity}, into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    panel = figure.subplots()
    for name, values in found.items():
        panel.plot(sorted(values), [values[n] for n in sorted(values)], "o-", label=RUNS[name])
    # Lengths double from one to the next, and begin at 0.
    panel.set_xscale("symlog", base=2, linthresh=16)
    lengths = sorted(set.union(*map(set, found.values())))
    panel.set_xticks(lengths, lengths)
    panel.set(xlabel="tokens remembered in the evaluation", ylabel="held-out perplexity")
    panel.set_yscale("log")
    panel.grid(alpha=0.3, which="both")
    panel.legend()
    with files.whole_file(str(path)) as temporary:
        figure.savefig(temporary, dpi=150, format="png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/memory_lengths.py out/memory")
    main(Path(sys.argv[1]))
