"""Tiny models of each task as folders, their servings and their exports."""

import csv
import functools
import json
import os

import keras
import numpy as np
import tensorflow as tf
from conftest import RESOURCES, SHARED

from nezha_tf import FullTokenizer, NezhaConfig, checkpoints
from nezha_tf.checkpoints import run_folder
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.modeling import finetuning, pretraining
from nezha_tf.serving.export import export_folder, serving_of

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
TOKENS = VOCABULARY.read_text(encoding="utf-8").split()
# In this order the random weights find some.
TAGS = ["B-LOC", "I-LOC", "O", "I-PER", "B-PER"]
# A model of each kind that the page has a use for.
SETTINGS = {
    "reviews": {
        "task": "classification",
        "label_type": "single",
        "labels": ["差评", "好评"],
        "is_pair": False,
    },
    "pairs": {
        "task": "classification",
        "label_type": "multi",
        "labels": ["a", "b", "c"],
        "is_pair": True,
    },
    "likeness": {
        "task": "classification",
        "label_type": "regression",
        "labels": [],
        "is_pair": True,
    },
    "names": {
        "task": "tagging",
        "labels": TAGS,
        "scheme": "BIO",
        "crf": False,
        "window_stride": 10,
    },
    "names_crf": {
        "task": "tagging",
        "labels": TAGS,
        "scheme": "BIO",
        "crf": True,
        "window_stride": 10,
    },
    "questions": {
        "task": "reading_comprehension",
        "max_query_length": 12,
        "doc_stride": 8,
        "max_answer_length": 5,
        "n_best_size": 4,
        "version_2_with_negative": True,
        "null_score_diff_threshold": 0.0,
    },
    "choices": {"task": "multiple_choice", "has_blanks": False},
    "idioms": {"task": "multiple_choice", "has_blanks": True},
    "titles": {
        "task": "seq2seq",
        "target_prediction": "masked",
        "max_source_length": 24,
        "max_target_length": 8,
        "truncate_source": "tail",
        "min_target_length": 2,
        "decoding": "beam",
        "beam_size": 2,
        "num_return_sequences": 1,
        "length_penalty": 0.7,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "no_repeat_ngram_size": 0,
        "exempt_words": [],
        # Words of Latin letters could be parted in several ways.
        "banned_words": [token for token in TOKENS if token.isascii() and token != "[SEP]"],
    },
    "nezha": {"task": "pretraining", "objectives": "bidirectional"},
}
COMMON = {"do_lower_case": True, "uses_averages": False, "max_seq_length": 32}


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


def write_folder(folder, settings, vocabulary=VOCABULARY, **changes):
    """Writes a folder as a run of a task leaves it, with random weights.

    `changes` are those of the configuration.
    """
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(vocabulary.read_bytes())
    size = len(FullTokenizer(vocabulary).vocabulary)
    config = {**CONFIG, "vocab_size": size, **changes}
    (folder / "bert_config.json").write_text(json.dumps(config))
    keras.utils.set_random_seed(7)
    model = model_of(settings, NezhaConfig.from_json_file(folder / "bert_config.json"))
    for variable in model.weights:
        if not variable.numpy().any():  # as transitions and biases begin
            variable.assign(keras.random.normal(variable.shape, stddev=0.5))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt-1"))
    run_folder.write_task(str(folder), {**COMMON, **settings})


# How many real texts are compared; more by hand, as in EXPORT_TEXTS=500 pytest tests/serving.
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
def signatures_in(export):
    """Returns the signatures of an export, dict of name to function, loaded in this process."""
    loaded = tf.saved_model.load(str(export))
    # The functions do not hold their weights.
    return {"_owner": loaded, **loaded.signatures}


class Served(dict):
    """The signatures of a folder's `Serving`, by name.

    Attributes:
      folder: the `ModelFolder`.
      serving: the `Serving`, whose signatures are these, so that they are traced once.
    """

    def __init__(self, path, settings, task=None, vocabulary=VOCABULARY):
        write_folder(path, settings, vocabulary)
        self.folder = open_folder(path)
        self.serving = serving_of(self.folder, task)[1]
        super().__init__(self.serving.signatures())
        self.serving.signatures = self.copy


def ask(signatures, signature="serving_default", **inputs):
    """Returns what a signature answers, dict of name to array, with texts as str.

    Args:
      signatures: a `Served`, or the path of an export.
      signature: the name of one.
      **inputs: lists or tensors.
    """
    if not isinstance(signatures, dict):
        signatures = signatures_in(signatures)
    function = signatures[signature]
    specs = getattr(function, "input_signature", None)
    if specs is None:
        specs = function.structured_input_signature[1].values()
    tensors = {
        spec.name: tf.reshape(tf.constant(inputs[spec.name], spec.dtype), [0] * spec.shape.rank)
        if len(inputs[spec.name]) == 0
        else tf.constant(inputs[spec.name], spec.dtype)
        for spec in specs
    }
    outputs = function(**tensors)
    return {name: np.array(_decoded(value.numpy().tolist())) for name, value in outputs.items()}


def assert_each_row_alone(signatures, inputs, rows, signature="serving_default"):
    """Asserts that some rows by themselves are answered as together, and no rows by no rows."""
    together = ask(signatures, signature, **inputs)
    for row in rows:
        one = {name: values[row : row + 1] for name, values in inputs.items()}
        for name, values in ask(signatures, signature, **one).items():
            # Alone, a row may have fewer places.
            places = (slice(row, row + 1), *map(slice, values.shape[1:]))
            assert_same(values, together[name][places])
    none = ask(signatures, signature, **dict.fromkeys(inputs, ()))
    assert all(len(values) == 0 for values in none.values())


def assert_same(found, expected):
    """Asserts that arrays are the same, but for rounding."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        assert found.tolist() == expected.tolist()


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def make_export(folder, settings, task=None, vocabulary=VOCABULARY, **changes):
    """Writes a folder and its export beside it; returns the export's path."""
    write_folder(folder, settings, vocabulary, **changes)
    output_dir = folder.with_name(f"{folder.name}_export")
    export_folder(str(folder), str(output_dir), task)
    return output_dir
