"""Checkpoints of Hugging Face: transformers' outputs, and TF1's weights of the same model."""

import functools
import json
import os
import sys

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from checkpoint_models import assert_computes_the_same, model_of_peer, peer_inputs
from conftest import GOLDEN
from helpers import load_golden_model
from hugging_face_peer import KINDS, needs_transformers, weights_of, write_peer_anew
from safetensors.numpy import save_file

from nezha_tf import NezhaForPreTraining, checkpoints
from nezha_tf.util.errors import UserError

INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_transformers(kind):
    """Padded and full sequences of 200 tokens, against stored results."""
    assert_computes_the_same(GOLDEN / f"hugging_face_{kind}")


def test_gelu_of_transformers_is_not_that_of_the_originals():
    model = model_of_peer(GOLDEN / "hugging_face_bert", hidden_act="gelu")
    with np.load(GOLDEN / "hugging_face_bert" / "forward.npz") as figures:
        outputs = model(peer_inputs(figures), all_outputs=True)
        difference = np.abs(outputs["sequence_output"] - figures["sequence_output"])
    assert 1e-4 < difference.max() < 1e-2


@needs_transformers
@pytest.mark.processes
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "hidden_act, options, name",
    [
        ("gelu", {"safe_serialization": False}, "pytorch_model.bin"),
        ("gelu_new", {"max_shard_size": "4KB"}, INDEX),
        ("relu", {"safe_serialization": False, "max_shard_size": "4KB"}, None),
    ],
)
def test_outputs_are_those_of_transformers_now(tmp_path, kind, hidden_act, options, name):
    """The same for weights that are drawn and saved now, also as pickles and in several files."""
    write_peer_anew(kind, tmp_path, 7, hidden_act, **options)
    assert (tmp_path / (name or "pytorch_model.bin.index.json")).exists()
    assert_computes_the_same(tmp_path)


@functools.cache
def golden_model(name):
    return load_golden_model(name)


def fresh(name):
    return NezhaForPreTraining(golden_model(name).config)


def assert_equal_weights(model, name, dtype=np.float32):
    expected = golden_model(name)
    for found, wanted in zip(model.weights, expected.weights, strict=True):
        wanted = wanted.numpy().astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(found.numpy(), wanted, err_msg=found.path)


@pytest.mark.parametrize(
    "name, prefix, old",
    [
        ("bert_tiny", "bert.", False),
        ("nezha_tiny", "nezha.", True),
        ("bert_tiny", "roformer.", False),
        ("nezha_tiny", "", True),
    ],
)
def test_weights_are_those_of_tf1(tmp_path, name, prefix, old):
    """Names with and without the model's prefix, new and old; with buffers and the tied table."""
    weights = weights_of(name, old, prefix)
    weights[f"{prefix}embeddings.position_ids"] = np.arange(9)[None]
    table = "encoder.layer.0.attention.self.relative_positions_encoding.positions_encoding"
    weights[prefix + table] = np.ones((4, 4, 8), np.float32)
    weights[f"{prefix}encoder.embed_positions.weight"] = np.ones((4, 8), np.float32)
    words = weights[f"{prefix}embeddings.word_embeddings.weight"]
    weights["cls.predictions.decoder.weight"] = words.copy()
    weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"]
    if prefix == "bert.":  # If the biases are the same tensor, the file may have either name.
        del weights["cls.predictions.bias"]
    save_file(weights, tmp_path / "model.safetensors")
    model = fresh(name)
    assert checkpoints.load(model, str(tmp_path)) == ([], [], "")
    assert_equal_weights(model, name)


def test_half_precision(tmp_path):
    model = fresh("nezha_tiny")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        weights = {key: value.astype(dtype) for key, value in weights_of("nezha_tiny").items()}
        save_file(weights, tmp_path / "half.safetensors")
        assert checkpoints.load(model, tmp_path / "half.safetensors") == ([], [], "")
        assert_equal_weights(model, "nezha_tiny", dtype)


def write_parts(folder, weights):
    items = list(weights.items())
    parts = {"a.safetensors": dict(items[::2]), "b.safetensors": dict(items[1::2])}
    for file, part in parts.items():
        save_file(part, folder / file)
    weight_map = {key: file for file, part in parts.items() for key in part}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_a_model_in_parts(tmp_path):
    write_parts(tmp_path, weights_of("bert_tiny"))
    model = fresh("bert_tiny")
    assert checkpoints.load(model, tmp_path / INDEX) == ([], [], "")
    assert_equal_weights(model, "bert_tiny")
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(UserError, match=r"no checkpoint at .*b.safetensors"):
        checkpoints.load(model, tmp_path)


def test_what_is_left_over_or_missing_is_reported(tmp_path):
    weights = {n: v for n, v in weights_of("bert_tiny").items() if "pooler" not in n}
    words = weights["bert.embeddings.word_embeddings.weight"]
    weights |= {"cls.predictions.decoder.weight": words + 1, "lm.extra": np.ones(2, np.float32)}
    save_file(weights, tmp_path / "model.safetensors")
    model = fresh("bert_tiny")
    before = [variable.numpy() for variable in model.weights]
    with pytest.raises(UserError, match="lacks bert/pooler/dense/kernel"):
        checkpoints.load(model, tmp_path)
    for variable, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    report = checkpoints.load(model, tmp_path, may_be_missing=("bert/pooler/",))
    assert report.missing == ["bert/pooler/dense/kernel", "bert/pooler/dense/bias"]
    # A separate output table, which no model here has.
    assert report.unused == ["cls/predictions/decoder/kernel", "lm.extra"]


def test_a_folder_of_ours_is_read_as_ours(tmp_path):
    """Weights of transformers beside it do not matter: the file `checkpoint` marks TF1's layout."""
    model = load_golden_model("nezha_tiny")
    checkpoints.save_tf1_checkpoint(model, tmp_path / "model.ckpt-1")
    tf.compat.v1.train.update_checkpoint_state(str(tmp_path), "model.ckpt-1")
    (tmp_path / "model.safetensors").write_bytes(b"")
    model = fresh("nezha_tiny")
    checkpoints.load(model, tmp_path)
    assert_equal_weights(model, "nezha_tiny")


def test_bad_files_are_one_line(tmp_path):
    save_file(weights_of("nezha_tiny"), tmp_path / "good.safetensors")
    good = (tmp_path / "good.safetensors").read_bytes()
    bad = {
        "cut.safetensors": (good[:-5], "is damaged or not a safetensors file"),
        "text.safetensors": (b"these are no weights", "is damaged or not a safetensors file"),
        "empty.safetensors": (b"", "is damaged or not a safetensors file"),
        "list.index.json": (b"[1]", "is not an index of a model in several files"),
        "cut.index.json": (b'{"weight_map"', "is not an index of a model in several files"),
        "odd.index.json": (
            b'{"weight_map": {"a": 1}}',
            "is not an index of a model in several files",
        ),
        "none.index.json": (b'{"weight_map": {"a": "no.bin"}}', "no checkpoint at .*no.bin"),
    }
    for name, (content, message) in bad.items():
        (tmp_path / name).write_bytes(content)
        assert_refused(tmp_path / name, message)
    weights = weights_of("nezha_tiny")
    name = "bert.encoder.layer.0.output.dense.weight"
    for file, value, message in (
        ("shape", weights[name][1:], r"has shape \[\d+, \d+\], and the model's is"),
        ("int8", weights[name].astype(np.int8), "is of int8; only floating-point weights"),
    ):
        save_file({**weights, name: value}, tmp_path / f"{file}.safetensors")
        assert_refused(tmp_path / f"{file}.safetensors", message)
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "empty", "no checkpoint in the folder .*: neither TF1's .* nor Hugging Face's"),
        (tmp_path / "absent.safetensors", "no checkpoint at .*: no such file"),
        (tmp_path / "absent.bin", "no checkpoint at .*: no such file"),
    ):
        assert_refused(path, message)


def assert_refused(path, message):
    with pytest.raises(UserError, match=message) as error:
        checkpoints.load(golden_model("nezha_tiny"), path)  # the model is unchanged
    assert "\n" not in str(error.value)


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    for library, name in (("torch", "a.bin"), ("safetensors", "a.safetensors")):
        (tmp_path / name).write_bytes(b"x")
        monkeypatch.setitem(sys.modules, library, None)
        assert_refused(tmp_path / name, rf"needs {library} .*\[{library}\]")


class Intruder:
    """An object whose pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@needs_transformers
def test_a_pickle_of_more_than_weights_is_refused(tmp_path):
    import torch

    made, path = tmp_path / "made", tmp_path / "pytorch_model.bin"
    weights = {"a": torch.ones(2)}
    for zipped in (False, True):
        intruding = {**weights, "b": Intruder(str(made))}
        torch.save(intruding, path, _use_new_zipfile_serialization=zipped)
        assert_refused(path, "more than weights .*mkdir.*could run code")
        torch.save([1, 2], path, _use_new_zipfile_serialization=zipped)
        assert_refused(path, "has no named weights")
    assert not made.exists()
    torch.save(weights, path)
    content = path.read_bytes()
    for damaged in (b"", b"hello world", content[: len(content) // 2]):
        path.write_bytes(damaged)
        assert_refused(path, "is damaged, or a pickle of more than weights")


@needs_transformers
def test_a_pickle_of_parameters(tmp_path):
    """As of `dict(model.named_parameters())`; they carry their gradient's history."""
    import torch

    weights = {
        name: torch.nn.Parameter(torch.tensor(value).to(torch.bfloat16))
        for name, value in weights_of("nezha_tiny").items()
    }
    torch.save(weights, tmp_path / "pytorch_model.bin")
    model = fresh("nezha_tiny")
    assert checkpoints.load(model, tmp_path) == ([], [], "")
    assert_equal_weights(model, "nezha_tiny", ml_dtypes.bfloat16)


def test_a_pickle_of_another_torch_is_refused(tmp_path, monkeypatch):
    class OldTorch:
        __version__ = "2.5.1+cpu"

    (tmp_path / "a.bin").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "torch", OldTorch)
    assert_refused(tmp_path / "a.bin", "torch 2.5.1.cpu cannot read safely")
