"""Answers from SavedModels, in a process that has tensorflow and tensorflow-text, none of ours.

Run with -I. Reads a line of JSON for each question, [folder, signature, inputs], the inputs a dict
of name to list, and writes a line: dict of name to nested list. A question without a signature has
the text of a program for its inputs, which runs beside the folder and makes `outputs`.
"""

import contextlib
import functools
import json
import os
import sys

HIDDEN = ("nezha_tf", "jieba")
# Before a text that is no UTF-8: its bytes as Latin-1.
BYTES = "\ue001"


# As if they were not installed. (Keras is: tensorflow-text imports it.)
sys.modules.update(dict.fromkeys(HIDDEN))

import tensorflow as tf  # noqa: E402
import tensorflow_text  # noqa: E402, F401

# As in quick_tensorflow, which is ours: optimizing a graph takes half of its first call.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
load_once = functools.cache(tf.saved_model.load)


def load(folder):
    return load_once(os.path.realpath(folder))


tf.saved_model.load = load  # the program of a README loads what has been asked already


def encoded(value):
    if isinstance(value, list):
        return [encoded(part) for part in value]
    if isinstance(value, str):
        return value[1:].encode("latin-1") if value[:1] == BYTES else value.encode()
    return value


def answer(folder, signature, inputs):
    if not signature:
        names = {}
        with contextlib.chdir(os.path.dirname(folder)):
            exec(inputs, names)
        return listed(names["outputs"])
    function = load(folder).signatures[signature]
    specs = function.structured_input_signature[1]
    tensors = {
        name: tf.constant([encoded(value) for value in values], specs[name].dtype)
        for name, values in inputs.items()
    }
    return listed(function(**tensors))


def listed(outputs):
    return {name: tensor.numpy().tolist() for name, tensor in outputs.items()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line)), default=bytes.decode), flush=True)
