"""Models by name: what is fetched from a hub, what stays, and what is told."""

import errno
import functools
import importlib
import json
import os
import pathlib
import sys

import pytest
from hub_server import FIRST, GATED, NO_REVISION, NOT_THERE, SECOND, begin_anew, serving

from nezha_tf import hub, inputs, resources
from nezha_tf.util.errors import UserError

NAME = "hf:owner/tiny"
SMALL = (
    *("config.json", "vocab.txt", "tokenizer_config.json"),
    *("modules.json", "sentence_bert_config.json", "README.md"),
)
UNREAD = ("tf_model.h5", "flax_model.msgpack", "onnx/model.onnx", "rust_model.ot")
PARTS = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]


def _files(names, mark=""):
    """Returns names with contents; a hub stores equal contents once."""
    return {name: f"{name} {mark}".encode() for name in names}


@pytest.fixture
def server(tmp_path, monkeypatch):
    weights = ("model.safetensors", "pytorch_model.bin")
    with serving(_files((*SMALL, *UNREAD, *weights))) as server:
        server.begin = functools.partial(begin_anew, monkeypatch, cache=tmp_path / "cache")
        server.begin(url=server.url)
        yield server


def test_what_is_read_is_fetched_once(server, capfd):
    folder = resources.model_path(NAME)
    wanted = sorted([*SMALL, "model.safetensors"])
    assert server.fetched() == sorted(os.listdir(folder)) == wanted
    assert {name: pathlib.Path(folder, name).read_bytes() for name in SMALL} == _files(SMALL)
    asked = len(server.asked)
    assert resources.model_path(NAME) == folder and hub.pinned(NAME) == f"{NAME}@{FIRST}"
    assert len(server.asked) == asked
    # Another process asks what the name means now, and fetches nothing; with a commit, not even so.
    server.begin(url=server.url)
    server.asked.clear()
    assert resources.model_path(f"{NAME}@main") == folder and not server.fetched()
    server.begin(url=server.url)
    server.asked.clear()
    assert resources.model_path(f"{NAME}@{FIRST}") == folder and not server.asked
    server.close()
    for name in (NAME, f"{NAME}@{FIRST}"):
        server.begin(url=server.url, HF_HUB_OFFLINE="1")
        assert hub.folder_of(name) == folder
    assert capfd.readouterr().err == ""
    server.begin(url=server.url)
    assert hub.folder_of(NAME) == folder and hub.pinned(NAME) == f"{NAME}@{FIRST}"
    told = capfd.readouterr().err
    assert "no answer (" in told and f"taken from the cache, commit {FIRST}" in told


def test_one_set_of_weights(server):
    for number, (weights, read) in enumerate(
        (
            ([*PARTS, "model.safetensors.index.json", "pytorch_model.bin"], 3),
            (["pytorch_model.bin", "checkpoint", "x.ckpt.index", "x.ckpt.data-00000-of-00001"], 1),
            (
                ["x.ckpt.data-00000-of-00001", "x.ckpt.index", "checkpoint", "a/pytorch_model.bin"],
                3,
            ),
            ([PARTS[0], "model.safetensors.index.json", "pytorch_model.bin"], -1),
        )
    ):
        server.files = _files([*SMALL, *UNREAD, *weights], f"{number}")
        server.asked.clear()
        server.head = f"{number}" * 40
        hub.folder_of(f"{NAME}@{server.head}")
        wanted = weights[:read] if read > 0 else weights[read:]
        assert server.fetched() == sorted([*SMALL, *wanted])


def test_of_the_checkpoints_of_a_run_the_best_is_fetched(server):
    ends = ("index", "data-00000-of-00001")
    files = [f"model.ckpt-{step}.{end}" for step in (9, 10) for end in ends]
    beside = ["bert_config.json", "vocab.txt", "task.json", "best_checkpoint.json"]
    for step, read in ((9, files[:2]), ([9], files[2:])):  # what is no step is passed over
        best = {"best_checkpoint.json": json.dumps({"global_step": step}).encode()}
        server.files = _files([*beside, *files], f"{step}") | best
        server.asked.clear()
        server.head = f"{len(str(step))}" * 40
        hub.folder_of(f"{NAME}@{server.head}")
        assert server.fetched() == sorted([*beside, *read])


def test_a_refusal_is_one_line(server):
    for part, *refusal, words in (
        ("api", 404, NOT_THERE, "not there, or is private; check the name, and"),
        ("api", 401, NOT_THERE, "for a private one set HF_TOKEN"),
        ("api", 404, NO_REVISION, "it has no such revision"),
        ("resolve", 403, GATED, "ask on its page, then set HF_TOKEN"),
        ("api", 403, "", "access is refused (403); set HF_TOKEN"),
        ("api", 500, "", "status 500"),
        ("resolve", 404, "EntryNotFound", "not there, or has no such revision"),
    ):
        server.refused = {part: refusal}
        with pytest.raises(UserError) as told:
            inputs.check({"init_checkpoint": NAME})
        assert str(told.value).startswith(f"{NAME}: ") and words in str(told.value)
        assert "\n" not in str(told.value)


def test_what_the_machine_lacks_is_one_line(server, monkeypatch):
    def fetched(repository, revision, file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(hub.HUBS, "hf", hub.HUBS["hf"]._replace(fetched=fetched))
    with pytest.raises(UserError, match=f"^{NAME}: no space is left in the cache"):
        hub.folder_of(NAME)
    for name, library in ((NAME, "huggingface_hub"), ("modelscope:a/b", "modelscope_hub")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(
            UserError, match=rf"^{name} needs {library} .*'\.\[hub\]' in the clone$"
        ):
            hub.folder_of(name)


def test_nobody_answers_and_nothing_is_there(server):
    server.close()
    for environment, words in (
        ({}, "does not answer"),
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
    ):
        server.begin(url=server.url, **environment)
        with pytest.raises(UserError, match=words):
            hub.folder_of(NAME)


def test_what_was_cut_off_is_gone_on_with(server, tmp_path, monkeypatch):
    _in_small_chunks(monkeypatch)
    server.files["model.safetensors"] = data = os.urandom(5000)
    server.cut = 2000
    with pytest.raises(
        UserError,
        match=r"cut off .*; HF_ENDPOINT names a mirror; start again: the files that came",
    ):
        hub.folder_of(NAME)
    # No file of a part, and no name for a commit that is not whole.
    assert not list((tmp_path / "cache").rglob("snapshots/*/model.safetensors"))
    server.begin(url=server.url, HF_HUB_OFFLINE="1")
    with pytest.raises(UserError, match="does not have it whole"):
        hub.folder_of(NAME)
    server.begin(url=server.url)
    _in_small_chunks(monkeypatch)
    server.cut = None
    server.asked.clear()
    folder = hub.folder_of(NAME)
    assert pathlib.Path(folder, "model.safetensors").read_bytes() == data
    assert server.fetched() == ["model.safetensors"]
    # Either the second try goes on there or, from version 1 on, the first tried it several times.
    assert server.begins and min(server.begins) >= 2000


def _in_small_chunks(monkeypatch):
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 500)


def test_nothing_to_read(server):
    for names, words in (
        (
            [*UNREAD, *(f"{n}.msgpack" for n in range(9))],
            r"no weights that can be read; it has 0\.",
        ),
        (["config.json", "a/model.safetensors"], "it has config.json, a/model.safetensors$"),
        (["pytorch_model.bin"], "no configuration .* it has pytorch_model.bin$"),
        ([], "it has no file"),
    ):
        server.files = _files(names)
        with pytest.raises(UserError, match=words):
            hub.folder_of(NAME)
    assert not server.fetched()


def test_a_model_of_modelscope(server, monkeypatch, tmp_path):
    pytest.importorskip("modelscope_hub", reason="pip install -e '.[hub]'")
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", server.url)
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "cache"))
    name = "modelscope:owner/tiny"
    folder = resources.model_path(name)
    assert sorted(os.listdir(folder)) == server.fetched() == sorted([*SMALL, "model.safetensors"])
    assert pathlib.Path(folder, "vocab.txt").read_bytes() == server.files["vocab.txt"]
    assert hub.pinned(name) == f"{name}@{FIRST}"
    monkeypatch.setattr(hub, "_known", {})
    server.asked.clear()
    assert hub.folder_of(f"{name}@{FIRST}") == folder and not server.asked
    with pytest.raises(UserError, match=r"not there, or is private; .* set MODELSCOPE_API_TOKEN"):
        hub.folder_of("modelscope:owner/none")
    server.refused = {"api": (403, "")}
    with pytest.raises(UserError, match=r"refused \(403\); set MODELSCOPE_API_TOKEN"):
        hub.folder_of("modelscope:owner/private")


@pytest.mark.parametrize("rest", ["", "a/b/c", "/b", "a/", "//a/b", "a/b@", "a b", "a/b@x@y"])
def test_what_is_no_name(rest):
    with pytest.raises(UserError, match="write hf:OWNER/NAME or hf:OWNER/NAME@REVISION"):
        hub.folder_of(f"hf:{rest}")


def test_a_file_of_this_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs(NAME)
    assert resources.model_path(NAME) == NAME and not hub.is_name(NAME)
    assert hub.is_name("hf:bert-base-chinese")
    for path in ("out", "C:/models", "gs://bucket/hf:x", "", None):
        assert not hub.is_name(path)


def test_what_a_run_began_with(tmp_path):
    sweep = tmp_path / "out[1]" / "lr_1" / "seed_2"
    sweep.mkdir(parents=True)
    (sweep / "run.flags").write_text(f"--seed=2\n--init_checkpoint={NAME}@{FIRST}\n")
    for folder in (sweep, sweep.parent.parent):
        for revision in ("", "@main", f"@{FIRST}"):
            assert hub.recorded(folder, NAME + revision) == f"{NAME}@{FIRST}"
        for name in (f"{NAME}@{SECOND}", "hf:owner/tin", "hf:tiny", "mini", None):
            assert hub.recorded(folder, name) is None
    assert hub.recorded(tmp_path / "new", NAME) is None
