"""Seconds of whole commands: a small fine-tuning against `Trainer`, and the tools on one text.

  python commands.py --rows=reviews.tsv --model_folder=../nezha_tf/resources/mini

The fine-tuning trains on 1,000 rows, and predicts as many others. Both sides begin with the same
weights and end with predictions in a file; each command is a process of its own, in turns.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import forms
import machine
import numpy as np
from absl import app, flags
from timing import THREADS, ratio

FLAGS = flags.FLAGS
flags.DEFINE_string("model_folder", None, "a NEZHA without dropout", required=True)
flags.DEFINE_string("rows", None, "texts and labels with a tab between them", required=True)
flags.DEFINE_string("made_folder", "/tmp/commands", "where its other form is, or is put")
flags.DEFINE_integer("count", 1000, "rows to train on, and to predict")
flags.DEFINE_integer("epochs", 3, "epochs")
flags.DEFINE_integer("rounds", 3, "turns that each side gets")

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTH, BATCH, RATE = 128, 32, 3e-4
TEXT = "今天天气很[MASK]。"
# Each reads a text; the name is that of a program in tools/.
TOOLS = {
    "fill_mask": ("--text={text}",),
    "score_text": ("--input_file={pair}",),
    "extract_features": ("--input_file={file}", "--output_file={folder}/vectors.npy"),
    "generate_text": ("--prompt={text}", "--max_target_length=20"),
}


def main(_):
    forms.check_packages()
    machine.require_bytecode()
    machine.show()
    folder = os.path.abspath(FLAGS.model_folder)
    if not os.path.exists(FLAGS.made_folder):
        tool = ROOT / "tools" / "convert_checkpoint.py"
        _run(tool, f"--from={folder}", "--format=hugging_face", f"--to={FLAGS.made_folder}")
    with tempfile.TemporaryDirectory() as made:
        parts = _parts(made)
        _compare(_sides(folder, parts), made)
        _time_tools(folder, made)


def _parts(folder):
    """Writes two parts of the rows; returns their paths."""
    lines = pathlib.Path(FLAGS.rows).read_text("utf-8").splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    paths = []
    for number, name in enumerate(("train.tsv", "predict.tsv")):
        chosen = order[number * FLAGS.count : (number + 1) * FLAGS.count]
        paths.append(os.path.join(folder, name))
        pathlib.Path(paths[-1]).write_text("".join(f"{lines[i]}\n" for i in chosen), "utf-8")
    return paths


def _sides(folder, parts):
    """Returns dict of the sides' names to (program, its flags without the output folder)."""
    train, predict = parts
    ours = [f"--train_file={train}", f"--predict_file={predict}", "--do_train", "--do_predict"]
    ours += ["--task_name=custom", "--columns=text,label", f"--init_checkpoint={folder}"]
    ours += [f"--num_train_epochs={FLAGS.epochs}", f"--train_batch_size={BATCH}"]
    ours += [f"--max_seq_length={LENGTH}", f"--learning_rate={RATE}", "--precision=float32"]
    sides = {
        "ours": (ROOT / "run_classifier.py", ours),
        "ours, XLA": (ROOT / "run_classifier.py", [*ours, "--jit_compile"]),
    }
    peer = [FLAGS.made_folder, train, predict, FLAGS.epochs, BATCH, LENGTH, RATE, THREADS]
    trainer = ROOT / "benchmarks" / "trainer.py"
    sides["peer, eager"] = (trainer, [*map(str, peer), "eager"])
    if machine.has_cpp_compiler():
        sides["peer, compiled"] = (trainer, [*map(str, peer), "compiled"])
    return forms.wanted(sides)


def _compare(sides, folder):
    times = {name: [] for name in sides}
    for number in range(FLAGS.rounds):
        for name, (program, given) in sides.items():
            output = os.path.join(folder, f"{name} {number}")
            given = [*given, output if name.startswith("peer") else f"--output_dir={output}"]
            times[name].append([_run(program, *given)])
    times = {name: np.array(seconds) for name, seconds in times.items()}
    peers = [name for name in times if name.startswith("peer")]
    best = min(peers, key=lambda name: np.median(times[name]))
    print(f"{FLAGS.count:,} rows, {FLAGS.epochs} epochs, then {FLAGS.count:,} predictions\n")
    print("| side | seconds (least) | / best form of the peer |\n| --- | --- | --- |")
    for name, seconds in times.items():
        shown = f"{np.median(seconds):.1f} (least {seconds.min():.1f})"
        print(f"| {name} | {shown} | {ratio(seconds, times[best])} |", flush=True)


def _time_tools(folder, made):
    path, pair = os.path.join(made, "text.txt"), os.path.join(made, "pair.tsv")
    pathlib.Path(path).write_text(f"{TEXT.replace('[MASK]', '好')}\n", "utf-8")
    pathlib.Path(pair).write_text("src\ttgt\n今天天气\t很好。\n", "utf-8")
    print("\n| tool, one text | seconds (least) |\n| --- | --- |")
    for name, given in TOOLS.items():
        given = [each.format(text=TEXT, file=path, pair=pair, folder=made) for each in given]
        program = ROOT / "tools" / f"{name}.py"
        seconds = [_run(program, f"--model_folder={folder}", *given) for _ in range(FLAGS.rounds)]
        print(f"| {name} | {np.median(seconds):.1f} ({min(seconds):.1f}) |", flush=True)


def _run(program, *given):
    """Returns the seconds of a command, whose output is shown only if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "USE_TF": "0"}
    environment |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), str(THREADS))
    if program.name == "trainer.py":
        environment |= machine.peer_environment()
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(program), *given], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{program.name} failed:\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - start


if __name__ == "__main__":
    app.run(main)
