"""Hugging Face's own code on weights of its layout, where it is installed."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from nezha_tf.conversion import transformers_worker
from nezha_tf.errors import UserError
from nezha_tf.files import write_text

_LIBRARIES = ("torch", "transformers")
# Its names of the inputs.
_INPUTS = {
    "input_ids": "input_ids",
    "input_mask": "attention_mask",
    "segment_ids": "token_type_ids",
    "masked_lm_positions": "masked_lm_positions",
}


class Unavailable(Exception):
    """The library is not there, or not one that has such a model; the text says which."""


def outputs(model, kind, config_values, inputs, folder=None, tensors=None):
    """Returns what transformers computes.

    Args:
      model: a `config.HuggingFaceModel`.
      kind: the `Kind` of the model.
      config_values: dict of its `config.json`.
      inputs: dict of int arrays [B, T] by our names; and `masked_lm_positions`, [B, P], those of
        one row in all.
      folder: of a model that it is to read; or
      tensors: dict of its names to float32 arrays.

    Returns:
      dict of arrays by our names.

    Raises:
      Unavailable: as it says.
      UserError: the library refuses the model.
    """
    absent = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        raise Unavailable(f"{' and '.join(absent)} not installed")
    request = {
        "class_name": model.name + kind.architecture,
        "config": config_values,
        "model_folder": folder and os.path.abspath(folder),
        "outputs": kind.outputs,
    }
    with tempfile.TemporaryDirectory() as exchange:
        write_text(os.path.join(exchange, "request.json"), json.dumps(request))
        arrays = {_INPUTS[name]: value for name, value in inputs.items() if name in _INPUTS}
        np.savez(os.path.join(exchange, "inputs.npz"), **arrays)
        if tensors is not None:
            np.savez(os.path.join(exchange, "tensors.npz"), **tensors)
        _work(exchange)
        with np.load(os.path.join(exchange, "answer.npz")) as file:
            return dict(file)


def _work(exchange):
    process = subprocess.run(
        [sys.executable, transformers_worker.__file__, exchange],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    try:
        with open(os.path.join(exchange, "answer.json"), encoding="utf-8") as file:
            answer = json.load(file)
    except FileNotFoundError:
        last = (process.stderr.strip().splitlines() or [""])[-1]
        answer = {"unavailable": f"its process ended with status {process.returncode}: {last}"}
    if "unavailable" in answer:
        raise Unavailable(answer["unavailable"])
    if "refused" in answer:
        raise UserError(f"transformers refuses the model: {answer['refused']}")
