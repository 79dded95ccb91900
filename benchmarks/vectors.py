"""Sentences a second for which vectors are made on CPU: ours against sentence-transformers.

  python vectors.py --texts=texts.txt --model_folder=../nezha_tf/resources/mini

Both read the same weights and the same texts, a line each, tokenize them, and give the mean of all
tokens' states, float32 [texts, D]; their vectors are compared first.
"""

import functools
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import forms
import limits
import machine
import numpy as np
from absl import app, flags
from timing import import_tensorflow, import_torch, in_fresh_process

FLAGS = flags.FLAGS
flags.DEFINE_string("model_folder", None, "a NEZHA, or a BERT", required=True)
flags.DEFINE_string("texts", None, "a text on each line", required=True)
flags.DEFINE_string("made_folder", "/tmp/vectors", "where its other form is, or is put")
flags.DEFINE_integer("count", 4000, "texts in a step")
flags.DEFINE_multi_integer("batch", [32, 128], "texts that are read at a time")
flags.DEFINE_integer("rounds", 3, "turns that each side gets")
flags.DEFINE_integer("steps", 1, "times in a turn through the texts")

LENGTH = 128
ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(_):
    forms.check_packages()
    if not importlib.util.find_spec("sentence_transformers"):
        raise app.UsageError("no sentence-transformers; 3.0.1 fits transformers 4.40.2")
    rates = machine.show()
    with open(FLAGS.texts, encoding="utf-8") as file:
        texts = [line.strip() for line in file if line.strip()][: FLAGS.count]
    folder, made = os.path.abspath(FLAGS.model_folder), os.path.abspath(FLAGS.made_folder)
    _convert(folder, made)
    sides = {f"ours, float32, batches of {n}": (make_ours, folder, texts, n) for n in FLAGS.batch}
    for name, form in forms.peers("float32", "bfloat16", "bfloat16 weights").items():
        for n in FLAGS.batch:
            sides[f"{name}, batches of {n}"] = (make_peer, made, texts, n, form)
    _compare_vectors(forms.wanted(sides))
    config, lengths = in_fresh_process(lengths_of, folder, texts)
    least = limits.least(rates, config, lengths, -(-len(texts) // max(FLAGS.batch)))
    title = f"{len(texts):,} texts of {np.mean(lengths):.0f} tokens"
    forms.compare(title, sides, FLAGS.rounds, FLAGS.steps, len(texts), least)


def _convert(folder, made):
    if not os.path.exists(made):
        command = [
            sys.executable,
            str(ROOT / "tools" / "convert_checkpoint.py"),
            f"--from={folder}",
        ]
        subprocess.run([*command, "--format=hugging_face", f"--to={made}"], check=True)


def _compare_vectors(sides):
    """Prints how far the vectors of each side are from those of the first."""
    first = None
    for name, (make, *arguments) in sides.items():
        environment = machine.peer_environment() if name.startswith("peer") else {}
        found = in_fresh_process(_vectors, make, *arguments, environment=environment)
        first = found if first is None else first
        print(f"{name}: largest difference {np.abs(found - first).max():.1e}", flush=True)


def _vectors(make, *arguments):
    return make(*arguments)()


def make_ours(folder, texts, batch_size):
    """Returns a callable that makes the vectors of all texts as tools/extract_features.py does."""
    import_tensorflow()

    from nezha_tf.checkpoints.folder import open_folder
    from nezha_tf.data.rows import Row
    from nezha_tf.generation.model import load_model
    from nezha_tf.modeling.encoder import NezhaEncoder
    from nezha_tf.tasks.sentence_vectors import vectors

    opened = open_folder(folder)
    make_model = functools.partial(NezhaEncoder, max_seq_length=LENGTH)
    model, tokenizer = load_model(opened, make_model)
    layers = vectors.layer_numbers(["-1"], opened.config.num_hidden_layers)
    step = vectors.make_step(model, layers, "mean_all")
    rows = [Row({"text": text}, "texts", line) for line, text in enumerate(texts, 1)]

    def make():
        packed = vectors.pack(rows, tokenizer, LENGTH)
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            width = opened.config.hidden_size
            vectors.write(file.name, step, width, packed, "text", batch_size)
            return np.load(file.name)

    return make


def make_peer(folder, texts, batch_size, form):
    """Returns the same of sentence-transformers, which sorts the texts by their length."""
    torch = import_torch()
    from sentence_transformers import SentenceTransformer, models

    transformer = models.Transformer(folder, max_seq_length=LENGTH)
    width = transformer.auto_model.config.hidden_size
    model = SentenceTransformer(modules=[transformer, models.Pooling(width)], device="cpu")
    if form.precision == "bfloat16 weights":
        transformer.auto_model.to(torch.bfloat16)
    if form.is_compiled:
        transformer.auto_model.compile(dynamic=True)

    def make():
        with form.autocast(torch):
            found = model.encode(texts, batch_size=batch_size, convert_to_tensor=True)
        return found.float().numpy()

    return make


def lengths_of(folder, texts):
    """Returns the model's configuration, and the tokens of each text as it is cut."""
    from nezha_tf.checkpoints.folder import open_folder

    opened = open_folder(folder)
    lengths = [min(LENGTH, 2 + len(opened.tokenizer.tokenize(text))) for text in texts]
    return opened.config, lengths


if __name__ == "__main__":
    app.run(main)
