"""Answers a second of an exported classifier on CPU, its smaller forms, and what these cost.

Against the Python path and Hugging Face's pipeline with the same weights; all forms must give the
same answers first.
"""

import importlib.util
import multiprocessing
import os
import pathlib
import subprocess
import sys

import numpy as np
from absl import app, flags
from servers import Served, make_export, make_onnx, make_peer, make_python, make_tflite
from timing import THREADS, ratio, run_in_turns

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
SIDES = {
    "export": (make_export,),
    "Python path": (make_python,),
    **{f"TFLite {variant}": (make_tflite, variant) for variant in VARIANTS},
    "ONNX": (make_onnx,),
    "Hugging Face": (make_peer,),
}
# The largest difference in probability that counts as the same answer.
TOLERANCES = {"TFLite float16": 1e-2, "TFLite dynamic_range": 0.3}


def main(_):
    if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        raise app.UsageError("PyTorch and transformers are missing: pip install -e '.[bench]'")
    served = Served(FLAGS.model_folder, FLAGS.made_folder)
    sides = dict(SIDES)
    if not all(map(importlib.util.find_spec, ("tf2onnx", "onnxruntime"))):
        print("no ONNX: pip install -e '.[onnx]'")
        del sides["ONNX"]
    _make_forms(served, "ONNX" in sides)
    with open(FLAGS.texts, encoding="utf-8") as file:
        rows = [line.rstrip("\n").rsplit("\t", 1) for line in file]
    texts, labels = zip(*rows, strict=True)
    if FLAGS.answers:
        _compare_answers(served, sides, list(texts), labels)
    for batch in FLAGS.batch:
        _compare_times(served, sides, list(texts[: FLAGS.count]), batch)


def _make_forms(served, with_onnx):
    """Makes what is not there yet, by the tools."""
    targets = {f"{variant}.tflite": ("--variant", variant) for variant in VARIANTS}
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
        **({"model.onnx": ("convert_export", export, "--output_file")} if with_onnx else {}),
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
    print(
        f"accuracy on {len(texts):,} texts; answers and probabilities that differ from the export's"
    )
    expected = None
    for name, (make, *options) in sides.items():
        arguments = (make, served, texts, 32, *options)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(_answers, arguments)
        expected = expected or found
        right = sum(label == pair[0] for label, pair in zip(labels, found, strict=True))
        pairs = list(zip(expected, found, strict=True))
        # Of another label it is the probability of the same one that counts, of two labels.
        furthest = max(abs(a[1] - (b[1] if a[0] == b[0] else 1 - b[1])) for a, b in pairs)
        others = sum(a[0] != b[0] for a, b in pairs)
        print(f"  {name}: {right / len(texts):.4f}; {others}, at most {furthest:.1e}", flush=True)
        if furthest > TOLERANCES.get(name, 1e-4):
            raise SystemExit(f"{name} does not serve the same model")


def _answers(make, *arguments):
    os.environ["OMP_NUM_THREADS"] = str(THREADS)
    return make(*arguments)()


def _compare_times(served, sides, texts, batch):
    makers = {
        name: (make, served, texts, batch, *options) for name, (make, *options) in sides.items()
    }
    times = run_in_turns(makers, FLAGS.rounds, FLAGS.steps)
    batches = -(-len(texts) // batch)
    print(f"batches of {batch}, {THREADS} threads: ms a batch (least), texts a second, / export")
    for name, seconds in times.items():
        middle = np.median(seconds)
        least = seconds.min() / batches * 1000
        line = f"{middle / batches * 1000:.1f} ({least:.1f}), {len(texts) / middle:.0f}"
        print(f"  {name}: {line}, {ratio(seconds, times['export'])}", flush=True)


if __name__ == "__main__":
    app.run(main)
