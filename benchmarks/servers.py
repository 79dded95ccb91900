"""What serving.py compares, each with all imports inside: one runs in a process.

Each maker takes a `Served`, texts and the size of a batch, and returns a callable that answers all
texts, in their order, and returns the likeliest label and its probability for each.
"""

import json
import os
import warnings
from typing import NamedTuple

import numpy as np
from timing import THREADS, import_tensorflow, import_torch


class Served(NamedTuple):
    """Where a model lies in each of its forms.

    Attributes:
      model: the folder of a run of classification.
      made: a folder with `export`, `hugging_face`, and a `.tflite` and a `.onnx` for each variant.
    """

    model: str
    made: str

    def path(self, name):
        return os.path.join(self.made, name)


def make_export(served, texts, batch_size):
    """The SavedModel: raw texts in, labels out."""
    tf = import_tensorflow()
    import tensorflow_text  # noqa: F401

    model = tf.saved_model.load(served.path("export"))
    answer = model.signatures["serving_default"]

    def of_batch(batch):
        found = answer(text=tf.constant(batch))
        labels = [label.decode() for label in found["label"].numpy()]
        return zip(labels, found["probability"].numpy().tolist(), strict=True)

    return _in_batches(of_batch, texts, batch_size, keep=model)


def make_python(served, texts, batch_size, form):
    """`nezha_tf.load`: the tokenizer in Python, and the Keras model in a `tf.function`."""
    tf = import_tensorflow()
    import keras

    import nezha_tf
    from nezha_tf.training.devices import compiled

    keras.config.set_dtype_policy(form.policy)
    ids_of, labels = _packing(served)
    _, model = nezha_tf.load(served.model)
    names = ("input_ids", "input_mask", "segment_ids")
    probabilities = compiled(
        lambda *inputs: tf.nn.softmax(model(dict(zip(names, inputs, strict=True)))),
        form.is_compiled,
        model,
        tf.distribute.get_strategy(),
    )

    def of_batch(batch):
        arrays = _padded([ids_of(text) for text in batch])
        return _likeliest(probabilities(*map(tf.constant, arrays)).numpy(), labels)

    return _in_batches(of_batch, texts, batch_size)


def make_tflite(served, texts, batch_size, variant):
    """TFLite's interpreter, with the tokenizer in Python."""
    tf = import_tensorflow()

    ids_of, labels = _packing(served)
    path = served.path(f"{variant}.tflite")
    warnings.filterwarnings("ignore", message=".*tf.lite.Interpreter is deprecated")
    interpreter = tf.lite.Interpreter(path, num_threads=THREADS)
    answer = interpreter.get_signature_runner("from_ids")

    def of_batch(batch):
        ids, mask, segments = _padded([ids_of(text) for text in batch])
        found = answer(input_ids=ids, input_mask=mask, segment_ids=segments)
        return _likeliest(found["probabilities"], labels)

    return _in_batches(of_batch, texts, batch_size)


def make_onnx(served, texts, batch_size, variant):
    """onnxruntime, with the tokenizer in Python."""
    import_tensorflow()
    import onnxruntime

    ids_of, labels = _packing(served)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        served.path(f"{variant}.onnx"), options, providers=["CPUExecutionProvider"]
    )

    def of_batch(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        arrays = dict(zip(names, _padded([ids_of(text) for text in batch]), strict=True))
        return _likeliest(session.run(["probabilities"], arrays)[0], labels)

    return _in_batches(of_batch, texts, batch_size)


def make_peer(served, texts, batch_size, form):
    """Hugging Face's pipeline on PyTorch, with the same weights."""
    torch = import_torch()
    from transformers import BertTokenizerFast, NezhaForSequenceClassification, pipeline

    folder = served.path("hugging_face")
    model = NezhaForSequenceClassification.from_pretrained(folder).eval()
    if form.precision == "bfloat16 weights":
        model = model.to(torch.bfloat16)
    if form.is_compiled:
        model.compile(dynamic=True)
    # The pipeline makes NumPy arrays of the logits, and NumPy has no bfloat16.
    model.classifier.register_forward_hook(lambda module, inputs, logits: logits.float())
    answer = pipeline(
        "text-classification",
        model=model,
        tokenizer=BertTokenizerFast.from_pretrained(folder),
        truncation=True,
        max_length=_settings(served)["max_seq_length"],
    )

    def of_batch(batch):
        with form.autocast(torch):
            found = answer(batch, batch_size=batch_size)
        return [(row["label"], row["score"]) for row in found]

    return _in_batches(of_batch, texts, batch_size)


def lengths_of(served, texts):
    """Returns the model's configuration, and the tokens of each text as it is cut."""
    from nezha_tf.checkpoints.folder import open_folder

    ids_of, _ = _packing(served)
    return open_folder(served.model).config, [len(ids_of(text)) for text in texts]


def _in_batches(of_batch, texts, batch_size, keep=None):
    """Returns the callable; a SavedModel is to be kept, as its signatures do not hold it."""

    def step(_=keep):
        firsts = range(0, len(texts), batch_size)
        return [pair for first in firsts for pair in of_batch(texts[first : first + batch_size])]

    return step


def _settings(served):
    # Not by nezha_tf, which would bring tensorflow into the peer's process.
    with open(os.path.join(served.model, "task.json"), encoding="utf-8") as file:
        return json.load(file)


def _packing(served):
    """Returns a function from a text to its ids, and the labels."""
    from nezha_tf.checkpoints.folder import open_folder

    folder = open_folder(served.model)
    tokenizer, room = folder.tokenizer, folder.task["max_seq_length"] - 2

    def ids_of(text):
        tokens = ["[CLS]", *tokenizer.tokenize(text)[:room], "[SEP]"]
        return tokenizer.convert_tokens_to_ids(tokens)

    return ids_of, folder.task["labels"]


def _padded(rows):
    """Returns ids, mask and segments, int32 [B, T], as long as the longest row."""
    mask = np.arange(max(map(len, rows))) < np.array([[len(row)] for row in rows])
    ids = np.zeros(mask.shape, "int32")
    ids[mask] = np.concatenate(rows)
    return ids, mask.astype("int32"), np.zeros_like(ids)


def _likeliest(probabilities, labels):
    best = probabilities.argmax(axis=-1)
    return [(labels[i], float(row[i])) for i, row in zip(best, probabilities, strict=True)]
