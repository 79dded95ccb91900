"""Held-out loss over the budget: recipes of pretraining, each trained for several lengths.

  python budget.py --vocab_file=vocab.txt --output_dir=out/budget_runs

The recipes are flag files, which name the examples; all models have one size and one evaluation.
Each run ends its own schedule, because a loss in the middle of one is not what a shorter training
would have given. The time is that of the steps alone, from the run's log, so both sides want a
quiet machine. The same command goes on where it was stopped.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import machine
import numpy as np
from absl import app, flags

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
RECIPES = pathlib.Path(__file__).resolve().parent / "recipes"
METRIC = "masked_lm_loss"
FLAGS = flags.FLAGS
flags.DEFINE_string("vocab_file", None, "the vocabulary of the examples", required=True)
flags.DEFINE_string("output_dir", None, "folder of the runs and results", required=True)
flags.DEFINE_list("size", ["4", "256"], "layers and width of all models")
flags.DEFINE_list(
    "recipes", [str(RECIPES / "mini_1.flags"), str(RECIPES / "mini_2.flags")], "flag files"
)
flags.DEFINE_integer("num_train_steps", 8000, "steps of the first recipe, whose loss is the goal")
flags.DEFINE_list("shares", ["0.1", "0.2", "0.3", "0.4", "1"], "lengths, as shares of these steps")
flags.DEFINE_integer("seed", 1, "seed of the runs")
flags.DEFINE_list("changes", [], "more flags of all runs, such as --precision=mixed_bfloat16")


def main(_):
    machine.show()
    curves = {pathlib.Path(recipe).stem: [] for recipe in FLAGS.recipes}
    for share in sorted(map(float, FLAGS.shares)):  # in turns, as machines drift
        for recipe in FLAGS.recipes:
            curves[pathlib.Path(recipe).stem].append(_point(recipe, share))
    _show(curves)
    _draw(curves, os.path.join(FLAGS.output_dir, "budget.png"))


def _point(recipe, share):
    """Returns (steps, tokens, seconds, held-out loss) of a run, made if it is not there."""
    steps = round(FLAGS.num_train_steps * share)
    folder = os.path.join(FLAGS.output_dir, f"{pathlib.Path(recipe).stem}_{steps}")
    kept = pathlib.Path(folder, "point.json")
    if not kept.exists():
        standard = (f"--vocab_file={FLAGS.vocab_file}", f"--seed={FLAGS.seed}")
        standard += (f"--bert_config_file={_model()}", *FLAGS.changes)
        _run(
            f"--flagfile={recipe}",
            *standard,
            f"--num_train_steps={steps}",
            f"--output_dir={folder}",
        )
        _run(
            f"--flagfile={RECIPES / 'evaluation.flags'}",
            *standard,
            f"--init_checkpoint={folder}",
            f"--output_dir={folder}_held_out",
        )
        results = json.loads(pathlib.Path(f"{folder}_held_out", "eval_results.json").read_text())
        kept.write_text(json.dumps([steps, *_cost(folder), results[METRIC]]))
    return json.loads(kept.read_text())


def _model():
    """Writes the configuration of the models: that of mini in another size; returns its path."""
    layers, width = map(int, FLAGS.size)
    config = json.loads((REPOSITORY / "nezha_tf" / "configs" / "mini.json").read_text())
    tokens = pathlib.Path(FLAGS.vocab_file).read_text(encoding="utf-8").split("\n")
    config |= {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
    config |= {"num_attention_heads": width // 64, "vocab_size": len(tokens) - 1}
    path = pathlib.Path(FLAGS.output_dir, "bert_config.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return path


def _run(*arguments):
    command = [sys.executable, str(REPOSITORY / "run_pretraining.py"), *arguments]
    subprocess.run(command, check=True, cwd=REPOSITORY)


def _cost(folder):
    """Returns (tokens, seconds) of a run's steps, without its checkpoints and evaluations."""
    lines = pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()
    entries = [entry for entry in map(json.loads, lines) if "tokens_per_second" in entry]
    steps = np.diff([0, *(entry["step"] for entry in entries)])
    size = int(_flag(folder, "train_batch_size"))
    rates, examples = (
        np.array([entry[name] for entry in entries])
        for name in ("tokens_per_second", "examples_per_second")
    )
    tokens = steps * size * rates / examples
    # Compiling is in the first entry, so its steps count as the others do.
    rates[0] = np.median(rates)
    return float(tokens.sum()), float((tokens / rates).sum())


def _flag(folder, name):
    text = pathlib.Path(folder, "run.flags").read_text()
    return re.search(rf"^--{name}=(\S+)$", text, re.MULTILINE)[1]


def _show(curves):
    (name, first), *others = curves.items()
    print(
        "\n| recipe | steps | tokens | seconds | held-out loss |\n| --- | --- | --- | --- | --- |"
    )
    for recipe, points in curves.items():
        for steps, tokens, seconds, loss in points:
            print(f"| {recipe} | {steps:,} | {tokens:,.0f} | {seconds:,.0f} | {loss:.3f} |")
    goal, (_, tokens, seconds, loss) = first[-1][-1], first[-1]
    for recipe, points in others:
        reached = _until(goal, points)
        if reached is None:
            print(f"\n{recipe} does not reach the {loss:.3f} of {name} within these lengths")
            continue
        shares = [got / whole for got, whole in zip(reached, (tokens, seconds), strict=True)]
        print(
            f"\n{recipe} reaches the {loss:.3f} of {name} with {shares[0]:.2f} of its tokens, in "
            f"{shares[1]:.2f} of its time"
        )


def _until(goal, points):
    """Returns (tokens, seconds) at which a curve has a loss, or None.

    Between two lengths the loss is a line over the logarithm of the length.
    """
    losses = np.array([loss for *_, loss in points])
    if losses.min() > goal:
        return None
    end = int(np.argmax(losses <= goal))
    if end == 0:
        return points[0][1:3]
    share = (losses[end - 1] - goal) / (losses[end - 1] - losses[end])
    pairs = zip(points[end - 1][1:3], points[end][1:3], strict=True)
    return [float(np.exp(np.log(a) * (1 - share) + np.log(b) * share)) for a, b in pairs]


def _draw(curves, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for recipe, points in curves.items():
        _, _, seconds, losses = zip(*points, strict=True)
        axes.plot(np.array(seconds) / 60, losses, marker="o", label=recipe)
    axes.set(xscale="log", xlabel="minutes of training", ylabel=f"held-out {METRIC}")
    axes.legend()
    figure.savefig(path, dpi=150)
    print(f"\ncurves in {path}")


if __name__ == "__main__":
    app.run(main)
