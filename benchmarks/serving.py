"""Answers a second of an exported classifier on CPU, its smaller forms, and what these cost.

Against the Python path and Hugging Face's pipeline with the same weights; all forms must give the
same answers first.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

import forms
import limits
import machine
from absl import app, flags
from servers import (
    Served,
    lengths_of,
    make_export,
    make_onnx,
    make_peer,
    make_python,
    make_tflite,
)
from timing import in_fresh_process

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "model_folder", None, "--output_dir of a run of run_classifier.py", required=True
)
flags.DEFINE_string("made_folder", "/tmp/serving", "where its other forms are, or are put")
flags.DEFINE_string("texts", None, "texts and labels with a tab between them", required=True)
flags.DEFINE_multi_integer("batch", [1, 8, 32], "texts that are answered at a time")
flags.DEFINE_bool("answers", True, "whether the answers of all texts are compared first")
flags.DEFINE_integer("count", 64, "texts that a step answers")
flags.DEFINE_integer("rounds", 5, "turns that each side gets")
flags.DEFINE_integer("steps", 2, "times in a turn through the texts")

VARIANTS = ("float32", "float16", "dynamic_range")
ONNX_VARIANTS = ("float32", "dynamic_range")
# The largest difference in probability that counts as the same answer.
TOLERANCES = {"float16": 1e-2, "bfloat16": 0.1, "dynamic_range": 0.3}


def main(_):
    forms.check_packages()
    rates = machine.show()
    served = Served(FLAGS.model_folder, FLAGS.made_folder)
    sides = _sides()
    _make_forms(served, any("ONNX" in name for name in sides))
    with open(FLAGS.texts, encoding="utf-8") as file:
        rows = [line.rstrip("\n").rsplit("\t", 1) for line in file]
    texts, labels = zip(*rows, strict=True)
    if FLAGS.answers:
        _compare_answers(served, sides, list(texts), labels)
    for batch in FLAGS.batch:
        count = min(FLAGS.count, len(texts))
        makers = {
            name: (make, served, list(texts[:count]), batch, *options)
            for name, (make, *options) in sides.items()
        }
        title = f"batches of {batch}; ms of a batch"
        batches = -(-count // batch)
        config, lengths = in_fresh_process(lengths_of, served, list(texts[:count]))
        least = limits.least(rates, config, lengths, batches)
        forms.compare(title, makers, FLAGS.rounds, FLAGS.steps, count, least, batches)


def _sides():
    """Returns dict of the sides' names to (maker, its last arguments)."""
    sides = {"ours, export": (make_export,)}
    for name, form in forms.OURS.items():
        sides[f"{name}, Python path"] = (make_python, form)
    for variant in VARIANTS:
        sides[f"ours, TFLite {variant}"] = (make_tflite, variant)
    if all(map(importlib.util.find_spec, ("tf2onnx", "onnxruntime"))):
        for variant in ONNX_VARIANTS:
            sides[f"ours, ONNX {variant}"] = (make_onnx, variant)
    else:
        print("no ONNX: pip install -e '.[onnx]'")
    for name, form in forms.peers("float32", "bfloat16", "bfloat16 weights").items():
        sides[name] = (make_peer, form)
    return forms.wanted(sides)


def _make_forms(served, with_onnx):
    """Makes what is not there yet, by the tools."""
    targets = {f"{variant}.tflite": ("--variant", variant) for variant in VARIANTS}
    if with_onnx:
        targets |= {f"{variant}.onnx": ("--variant", variant) for variant in ONNX_VARIANTS}
    export = f"--saved_model={served.path('export')}"
    commands = {
        "export": ("export_saved_model", f"--model_folder={served.model}", "--output_dir"),
        "hugging_face": (
            "convert_checkpoint",
            f"--from={served.model}",
            "--format=hugging_face",
            "--to",
        ),
        **{
            name: ("convert_export", export, "=".join(variant), "--output_file")
            for name, variant in targets.items()
        },
    }
    root = pathlib.Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}"}
    for name, (tool, *arguments, output) in commands.items():
        if not os.path.exists(served.path(name)):
            arguments = [*arguments, f"{output}={served.path(name)}"]
            command = [sys.executable, str(root / "tools" / f"{tool}.py"), *arguments]
            subprocess.run(command, check=True, env=environment)


def _compare_answers(served, sides, texts, labels):
    """Prints the accuracy of each side on all texts; stops where one has other answers."""
    print(f"accuracy on {len(texts):,} texts; answers and probabilities that differ from the first")
    expected = None
    for name, (make, *options) in sides.items():
        environment = machine.peer_environment() if name.startswith("peer") else {}
        arguments = (make, served, texts, 32, *options)
        found = in_fresh_process(_answers, *arguments, environment=environment)
        expected = expected or found
        right = sum(label == pair[0] for label, pair in zip(labels, found, strict=True))
        pairs = list(zip(expected, found, strict=True))
        # Of another label it is the probability of the same one that counts, of two labels.
        furthest = max(abs(a[1] - (b[1] if a[0] == b[0] else 1 - b[1])) for a, b in pairs)
        others = sum(a[0] != b[0] for a, b in pairs)
        print(f"  {name}: {right / len(texts):.4f}; {others}, at most {furthest:.1e}", flush=True)
        if furthest > max([1e-4, *(limit for part, limit in TOLERANCES.items() if part in name)]):
            raise SystemExit(f"{name} does not serve the same model")


def _answers(make, *arguments):
    return make(*arguments)()


if __name__ == "__main__":
    app.run(main)
