"""Compares what a converted model computes with what the original model computes."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from nezha_tf.checkpoints import loading, transformers_worker
from nezha_tf.checkpoints.kinds import POOLER, heads
from nezha_tf.checkpoints.published import CONFIG_FILE as HUGGING_FACE_CONFIG_FILE
from nezha_tf.config import NezhaConfig, model_type_of, model_types, read_values
from nezha_tf.util import console
from nezha_tf.util.errors import UserError, install_command
from nezha_tf.util.files import write_text

# Models that differ by more are not the same. The rounding of float32 is far below this.
MOST = 1e-3
_BATCH, _LENGTH, _STRIDE = 3, 200, 20
_OF_ENCODER = ("sequence_output", "pooled_output")
_LIBRARIES = ("torch", "transformers")
# Our names of the inputs, and those of transformers.
_INPUTS = {
    "input_ids": "input_ids",
    "input_mask": "attention_mask",
    "segment_ids": "token_type_ids",
    "masked_lm_positions": "masked_lm_positions",
}


def compare(source, weights, config, written):
    """Runs the original and the converted model on the same random input.

    Args:
      source: `Source`, the original.
      weights: its `Weights`, rounded to the dtype of the new weights, with its own segment rows.
        If its layers or tokens are others, these are the original, and this project computes them.
      config, written: `NezhaConfig` and path of the weights of the new model.

    Returns:
      A table of the largest differences as text, and whether Hugging Face's code could be run.
      Differences of more than `MOST`, or NaN, are a `UserError`.
    """
    optional = (POOLER, *heads())
    needed = [name for name in weights.missing if not name.startswith(optional)]
    if needed:
        return f"not compared: the model cannot run without {needed[0]}"
    segments = min(source.config.type_vocab_size, config.type_vocab_size)
    original = dataclasses.replace(
        source.config, num_hidden_layers=config.num_hidden_layers, vocab_size=config.vocab_size
    )
    inputs, notes = _random_inputs(original, segments), []
    if original == source.config:
        before, one = _source_side(source, weights, inputs, notes)
    else:
        before, one = _ours(weights, original, source.checkpoint, weights, inputs), "nezha_tf"
    after, other = _written_side(weights, config, written, inputs, notes)
    rows = []
    for name in _compared(weights, before, after):
        difference = _difference(before[name], after[name])
        rows.append((name, f"{difference:.1e}"))
        if not difference <= MOST:
            raise UserError(
                f"{name} of the new model (computed by {other}) differs from that of the original "
                f"(by {one}) by {difference:.1e}, more than {MOST:.0e}; nothing is written: pass "
                "the configuration that belongs to the weights with --config_file"
            )
    batch, length = inputs["input_ids"].shape
    title = f"largest difference on {batch} x {length} random tokens: {one} before, {other} after"
    return "\n".join([console.table(title, rows), *dict.fromkeys(notes)])


def _random_inputs(config, segments):
    """Returns int32 arrays [3, T], T <= 200, two rows padded; `masked_lm_positions` is [3, P]."""
    rng = np.random.default_rng(0)
    length = min(_LENGTH, config.max_position_embeddings)
    lengths = np.array([[length], [max(1, length * 3 // 4)], [min(7, length)]])
    places = np.arange(0, length, _STRIDE)
    inputs = {
        "input_ids": rng.integers(0, config.vocab_size, (_BATCH, length)),
        "input_mask": np.arange(length) < lengths,
        "segment_ids": rng.integers(0, min(segments, 2), (_BATCH, length)),
        "masked_lm_positions": np.tile(places, (_BATCH, 1)),
        "label_mask": np.ones((_BATCH, length)),
    }
    return {name: value.astype("int32") for name, value in inputs.items()}


def _source_side(source, weights, inputs, notes):
    """Returns (outputs of the original, name of the library that computed them)."""
    if source.is_hugging_face:
        values = read_values(source.config_file)
        if "model_type" not in values:
            values = source.config.to_hugging_face()
        if weights.kind.has_labels:
            values = {**values, "num_labels": weights.num_labels}
        dtype = next(iter(weights.values.values())).dtype
        # A file may say that it is of another class than the one that has these numbers.
        model = model_types()[model_type_of(values)][1]
        prefix = f"{model.model_type}." if weights.kind.heads else ""
        tensors = {
            name: value.astype(dtype).astype("float32")
            for name, value in source.reader.tensors(prefix).items()
        }
        try:
            return _theirs(model, weights.kind, values, inputs, tensors=tensors), "transformers"
        except _Unavailable as error:
            notes.append(str(error))
    return _ours(weights, source.config, source.checkpoint, weights, inputs), "nezha_tf"


def _written_side(weights, config, written, inputs, notes):
    """Returns what `_source_side` returns, for the new model."""
    path, reader = loading.open_checkpoint(written)
    folder = os.path.dirname(path)
    config_file = os.path.join(folder, HUGGING_FACE_CONFIG_FILE)
    if os.path.exists(config_file):
        model, values = config.hugging_face_model, read_values(config_file)
        try:
            return _theirs(model, weights.kind, values, inputs, folder=folder), "transformers"
        except _Unavailable as error:
            notes.append(str(error))
        config = NezhaConfig.from_dict(values)
    return _ours(weights, config, path, reader, inputs), "nezha_tf"


def _ours(weights, config, path, reader, inputs):
    model = weights.model(config)
    loading.load_weights(model, path, reader, may_be_missing=weights.missing)
    has_choices = weights.kind.has_choices  # then the sequences are the choices of one question
    inputs = {n: v[None] if has_choices else v for n, v in inputs.items()}
    outputs = model(inputs, all_outputs=True)
    names = (*_OF_ENCODER, *weights.kind.outputs)
    return {name: outputs[name].numpy() for name in names if name in outputs}


def _compared(weights, *sides):
    """Returns the names of the outputs that both sides have and that need no missing weight."""
    lacks_pooler = any(name.startswith(POOLER) for name in weights.missing)
    absent = {"pooled_output"} if lacks_pooler else set()
    for head in weights.kind.heads:
        is_missing = any(name.startswith(head.prefix) for name in weights.missing)
        if is_missing or (lacks_pooler and head.from_pooler):
            absent.update(head.outputs)
    names = [name for name in (*_OF_ENCODER, *weights.kind.outputs) if name not in absent]
    return [name for name in names if all(name in outputs for outputs in sides)]


def _difference(before, after):
    # A classifier computes its last layer only for the first token.
    length = min(before.shape[1], after.shape[1]) if before.ndim == 3 else None
    return np.max(np.abs(before[:, :length] - after[:, :length]))


class _Unavailable(Exception):
    """The library is not installed, or has no such model; the argument says which."""

    def __str__(self):
        why = self.args[0]
        advice = install_command("transformers")
        return f"not compared with Hugging Face's code ({why}): {advice}"


def _theirs(model, kind, config_values, inputs, folder=None, tensors=None):
    """Returns the outputs of transformers, by our names, with weights in a folder or `tensors`."""
    absent = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        raise _Unavailable(f"{' and '.join(absent)} not installed")
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
        _run_worker(exchange)
        with np.load(os.path.join(exchange, "answer.npz")) as file:
            return dict(file)


def _run_worker(exchange):
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
        raise _Unavailable(answer["unavailable"])
    if "refused" in answer:
        raise UserError(f"transformers refuses the model: {answer['refused']}")
