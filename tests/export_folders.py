"""Tiny models of each task as folders, their exports, and what a clean process makes of them."""

import csv
import functools
import json
import os
import subprocess
import sys

import keras
import numpy as np
from conftest import REPOSITORY, RESOURCES, SHARED
from waiting import read_line

from nezha_tf import FullTokenizer, NezhaConfig, checkpoints
from nezha_tf.checkpoints import run_folder
from nezha_tf.export.exporter import export_folder
from nezha_tf.modeling import finetuning, pretraining

VOCABULARY = RESOURCES / "vocab.txt"
CONFIG = {
    "vocab_size": 9200,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 6,
    "use_relative_position": True,
    # So that what is put out depends on what is read.
    "initializer_range": 0.5,
}
COMMON = {"do_lower_case": True, "uses_averages": False}


def model_of(settings, config):
    """Returns a fresh model of the task of a folder's settings."""
    task = settings["task"]
    if task == "classification":
        num_outputs = max(1, len(settings["labels"]))
        return finetuning.NezhaForSequenceClassification(config, num_outputs)
    if task == "tagging":
        chain = finetuning.NezhaForCrfTagging
        kind = chain if settings["crf"] else finetuning.NezhaForTokenClassification
        return kind(config, len(settings["labels"]))
    if task == "multiple_choice":
        return finetuning.NezhaForMultipleChoice(config)
    if task == "reading_comprehension":
        return finetuning.NezhaForQuestionAnswering(config)
    if task == "seq2seq":
        model = pretraining.NezhaForMaskedLM(config)
        # Of tokens drawn by chance few targets would end, and none have an unknown word.
        likely = FullTokenizer(VOCABULARY).vocabulary.ids_of(["[UNK]", "[SEP]"])
        model.masked_lm.output_bias.assign(np.bincount(likely, [4.0, 6.0], config.vocab_size))
        return model
    return pretraining.NezhaForPreTraining(config)


def write_folder(folder, settings, vocabulary=VOCABULARY):
    """Writes a folder as a run of a task leaves it, with random weights."""
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(vocabulary.read_bytes())
    size = len(FullTokenizer(vocabulary).vocabulary)
    (folder / "bert_config.json").write_text(json.dumps({**CONFIG, "vocab_size": size}))
    keras.utils.set_random_seed(7)
    model = model_of(settings, NezhaConfig.from_json_file(folder / "bert_config.json"))
    for variable in model.weights:
        if not variable.numpy().any():  # as transitions and biases begin
            variable.assign(keras.random.normal(variable.shape, stddev=0.5))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt-1"))
    run_folder.write_task(str(folder), {**COMMON, **settings})


# How many real texts are compared; more by hand, as in EXPORT_TEXTS=500 pytest tests/export.
NUM_TEXTS = int(os.environ.get("EXPORT_TEXTS", 40))
# White space and no token at all, capitals and accents, marks apart from their letters, a syllable
# of several letters, what is dropped, beyond 16 bits, an overlong word, and no UTF-8.
ODD_TEXTS = [
    "",
    "  \t ",
    "Running CAFÉ e\u0301\u0301x İstanbul ΣΑΣ",
    "한국어 서\u0301울 ー，.-😀𠮷龘 25℃ ２０２３",
    "a\0b\u200bc\ufffd d\u2028e",
    "好" + "x" * 300 + "不好",
]
# Before a text that is sent as bytes.
BYTES = "\ue001"
INVALID = b"\xff\xe4\xbd" + "不好\n吗".encode() + b"\xed\xa0\x80z"
LONG_TEXT = "今天天气不错，Running！" * 7000  # more than 100,000 characters


def real_texts():
    """Returns texts of people: reviews, or the bundled sample where those are not there."""
    path = SHARED / "data" / "sentiment" / "dev.tsv"
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            texts = [row[0] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    else:
        corpus = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
        texts = [document.replace("\n", "") for document in corpus.split("\n\n")]
    return list(filter(None, texts))[:NUM_TEXTS]


@functools.cache
def _clean_process():
    """The process that `ask` asks; it ends with this one, whose end closes its input."""
    script = REPOSITORY / "tests" / "export" / "clean_process.py"
    command = [sys.executable, "-I", str(script)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(folder, signature="serving_default", **inputs):
    """Returns what an export answers in a clean process, dict of name to array.

    Args:
      folder: of the export.
      signature: its name.
      **inputs: lists; text that is no UTF-8 as bytes.
    """
    sent = {
        name: [
            f"{BYTES}{v.decode('latin-1')}" if isinstance(v, bytes) else np.asarray(v).tolist()
            for v in values
        ]
        for name, values in inputs.items()
    }
    return _answered(str(folder), signature, sent)


def run_readme(folder):
    """Runs the lines of Python in an export's README as they stand; returns the outputs."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return _answered(str(folder), None, text.split("```python\n")[1].split("```")[0])


def _answered(*question):
    process = _clean_process()
    print(json.dumps(question), file=process.stdin, flush=True)
    answered = json.loads(read_line(process.stdout))
    return {name: np.array(values) for name, values in answered.items()}


def make_export(folder, settings, task=None, vocabulary=VOCABULARY):
    """Writes a folder and its export beside it; returns the export's path."""
    write_folder(folder, settings, vocabulary)
    output_dir = folder.with_name(f"{folder.name}_export")
    export_folder(str(folder), str(output_dir), task)
    return output_dir
