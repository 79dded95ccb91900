"""Runs the code of Hugging Face on weights of its layout, if it is installed."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from nezha_tf.checkpoints import transformers_worker
from nezha_tf.util.errors import UserError
from nezha_tf.util.files import write_text

_LIBRARIES = ("torch", "transformers")
# Our names of the inputs, and those of transformers.
_INPUTS = {
    "input_ids": "input_ids",
    "input_mask": "attention_mask",
    "segment_ids": "token_type_ids",
    "masked_lm_positions": "masked_lm_positions",
}


class Unavailable(Exception):
    """The library is not installed, or has no such model; the message says which."""


def outputs(model, kind, config_values, inputs, folder=None, tensors=None):
    """Returns what transformers computes. The model comes from a folder or from tensors.

    Args:
      model: `config_forms.HuggingFaceModel`.
      kind: `Kind` of the model.
      config_values: dict, the content of its `config.json`.
      inputs: dict of int arrays [B, T] by our names; `masked_lm_positions` is [B, P], and all its
        rows are the same.
      folder: path of the model's folder, or None.
      tensors: dict of float32 arrays by the names of transformers, or None.

    Returns:
      dict of arrays by our names.

    Raises:
      Unavailable: the library cannot be used.
      UserError: the library refuses the model.
    """
    absent = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        raise Unavailable(f"{' and '.join(absent)} not installed")
    request = {
        "class_name": model.class_name(kind.architecture),
        "config": config_values,
        "model_folder": folder and os.path.abspath(folder),
        "outputs": {ours: model.outputs.get(n, n) for ours, n in kind.outputs.items()},
        "has_choices": kind.has_choices,
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
    """Runs the worker on the files of a folder; errors as for `outputs`."""
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
