"""Files of PyTorch: weights within other things, other endings, and tensors that are no weights."""

import argparse
import collections
import json
import pathlib
import zipfile

import numpy as np
import pytest
from hugging_face_peer import needs_transformers

from nezha_tf.checkpoints import loading, pickles
from nezha_tf.util.errors import UserError

NAME = "bert.pooler.dense.bias"
WEIGHTS = {NAME: np.arange(3, dtype="float32")}
OTHERS = {NAME: np.ones(3, "float32")}
STEP = np.float32(7)
OPTIMIZER = {"state": {0: {"exp_avg": np.ones(3)}}, "param_groups": [{"lr": 0.1}]}


@pytest.mark.parametrize(
    "found",
    [
        WEIGHTS,
        collections.OrderedDict(WEIGHTS),
        {"model": WEIGHTS, "optimizer": OPTIMIZER, "epoch": 3},
        {"state_dict": WEIGHTS, "callbacks": {"Best": {"score": STEP}}, "optimizer_states": []},
        {"model_state_dict": WEIGHTS, "optimizer_state_dict": OPTIMIZER, "loss": STEP},
        {"module": WEIGHTS, "optimizer": None, "buffer_names": []},
        {"model": {"state_dict": WEIGHTS}, "ema": OTHERS},
        {"ema": OTHERS, "model": WEIGHTS},
        {"net": WEIGHTS, "acc": STEP, 3: OTHERS},
        {"epoch": 1, "weights": {"encoder": WEIGHTS}},
        {**WEIGHTS, "ema": OTHERS},
    ],
)
def test_weights_are_found_within_what_training_programs_write(found):
    assert pickles._weights_in("a.pt", found, np.ndarray | np.float32) == WEIGHTS


def test_what_is_not_clear_is_refused():
    with pytest.raises(UserError, match=r"several names \(generator, discriminator\); save one"):
        pickles._weights_in("a.pt", {"generator": WEIGHTS, "discriminator": OTHERS}, np.ndarray)
    deep = {"a": {"b": {"c": WEIGHTS}}}
    assert pickles._weights_in("a.pt", deep, np.ndarray) == {}
    assert pickles._weights_in("a.pt", OPTIMIZER, np.ndarray) == {}


def test_files_are_known_by_their_beginning(tmp_path):
    """Also without torch: a prefix of TF1's is no file, and the first bytes of others differ."""
    for name, content, expected in (
        ("epoch=3.ckpt", b"PK\x03\x04...", True),
        ("old.ckpt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", True),
        ("model.ckpt", b"\x08\x01\x12", False),
        ("a.pth", b"", True),
    ):
        (tmp_path / name).write_bytes(content)
        assert pickles.is_pickle(str(tmp_path / name)) == expected
    assert not pickles.is_pickle(str(tmp_path / "absent.ckpt"))


def bias_in(path):
    """Returns the weight of the tests in a checkpoint."""
    _, reader = loading.open_checkpoint(path)
    return reader.get_tensor("bert/pooler/dense/bias")


def test_an_index_leads_out_of_no_folder(tmp_path):
    path = tmp_path / "pytorch_model.bin.index.json"
    for name in ("../x.bin", "/x.bin", "gs://b/x.bin", "a/../../x.bin"):
        path.write_text(json.dumps({"weight_map": dict.fromkeys("ab", name)}))
        with pytest.raises(UserError, match=r"names the file '.*', which is not in its folder"):
            loading.open_checkpoint(tmp_path)


@needs_transformers
@pytest.mark.parametrize("is_zip", (True, False))
def test_files_of_training_programs_are_loaded(tmp_path, is_zip):
    """As Lightning and others write them, with what is no tensor, beside a link to the file."""
    import torch

    found = {
        "state_dict": {NAME: torch.tensor(WEIGHTS[NAME])},
        "hyper_parameters": {"args": argparse.Namespace(lr=1)},
        "score": np.float64(0.5),
        "random": np.random.RandomState(0).get_state(),
        "folder": pathlib.PosixPath("/a"),
        "optimizer_states": [{"state": {0: {"step": torch.ones(1)}}}],
    }
    for name in ("last.ckpt", "a.pt", "a.pth", "pytorch_model.bin"):
        torch.save(found, tmp_path / name, _use_new_zipfile_serialization=is_zip)
        np.testing.assert_array_equal(bias_in(tmp_path / name), WEIGHTS[NAME])
    (tmp_path / "blobs").mkdir()
    (tmp_path / "last.ckpt").rename(tmp_path / "blobs" / "0a1b")  # as in the cache of the hub
    (tmp_path / "linked.bin").symlink_to("blobs/0a1b")
    index = {"weight_map": {NAME: "linked.bin"}}
    (tmp_path / "a.index.json").write_text(json.dumps(index))
    np.testing.assert_array_equal(bias_in(tmp_path / "a.index.json"), WEIGHTS[NAME])


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_are_no_weights_are_refused(tmp_path):
    import torch

    path, ones = tmp_path / "a.bin", torch.ones(3)
    for value, message in (
        (ones.to(torch.float8_e4m3fn), "is of float8_e4m3fn; only floating-point weights"),
        (ones.to(torch.int8), "is of int8; only"),
        (ones > 0, "is of bool; only"),
        (ones.to(torch.complex64), "is of complex64; only"),
        (torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8), "is of qint8; only"),
        (torch.eye(3).to_sparse(), "is of sparse_coo; only"),
        (torch.eye(3).to_sparse_csr(), "is of sparse_csr; only"),
        (torch.empty(3, device="meta"), r"has fewer values than its shape \[3\] needs"),
        (torch.ones(1).expand(10**12), r"has fewer values than its shape \[1000000000000\] needs"),
        (torch.ones(1).bfloat16().expand(10**12), "has fewer values than its shape"),
    ):
        torch.save({NAME: value}, path)
        assert_refused(path, f"{NAME} {message}")
    torch.save({0: ones, "a": ones}, path)
    assert_refused(path, "has weights under 0, which is no name")
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(tmp_path / "b.bin", "w", 8) as smaller:
        for part in file.infolist():
            smaller.writestr(part.filename, file.read(part) + bytes(10**6))
    assert_refused(tmp_path / "b.bin", "is compressed, as PyTorch writes no file")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    assert_refused(path, "is a program .TorchScript., not weights")
    torch.save(torch.nn.Linear(2, 2), path)
    assert_refused(path, "more than weights .*torch.nn.modules.linear.Linear.*state_dict")


def assert_refused(path, message):
    with pytest.raises(UserError, match=message) as error:
        bias_in(path)
    assert len(str(error.value).splitlines()) == 1
