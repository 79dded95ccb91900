"""Models that cannot be converted: one line each, and nothing left behind."""

import json
import os
import shutil

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    convert,
    weights_in,
    write_random,
    write_vocabulary,
)
from commands import assert_each_one_line, settings_of
from safetensors.numpy import load_file, save_file

from nezha_tf.checkpoints.convert import convert_checkpoint
from nezha_tf.checkpoints.settings import ConversionSettings
from nezha_tf.util.errors import UserError
from nezha_tf.util.settings import changed as changed_flags
from nezha_tf.util.settings import flags_of

PROGRAM = "tools/convert_checkpoint.py"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of a run and one of Hugging Face with the same model."""
    folder = tmp_path_factory.mktemp("models")
    write_random(folder / "run", "pretraining", num_hidden_layers=2, position_encoding="absolute")
    report = convert(folder / "run", folder / "hf", "hugging_face")
    assert f"run/model.ckpt-7 to {folder / 'hf'} (hugging_face)" in report
    assert sorted(os.listdir(folder / "hf")) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "vocab.txt",
    ]
    assert report in (folder / "hf" / "README.md").read_text()
    return folder


@pytest.fixture
def folder(models, tmp_path, monkeypatch):
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_refused(part, **values):
    """Asserts that a conversion in the working directory is one line, and leaves nothing."""
    before = sorted(os.listdir())
    with pytest.raises(UserError) as error:
        convert_checkpoint(ConversionSettings(**{"to": "new", **values}))
    message = str(error.value)
    assert part in message and "\n" not in message, message
    assert sorted(os.listdir()) == before


def changed(name, **changes):
    """Writes a changed configuration of the run; returns its name."""
    with open("run/bert_config.json", encoding="utf-8") as file:
        values = json.load(file)
    with open(name, "w", encoding="utf-8") as file:
        json.dump({**values, **changes}, file)
    return name


@pytest.mark.processes
def test_the_program_says_it_in_a_line(folder):
    mistakes = [
        (("--from=run", "--to=run"), ["--to=run exists already"]),
        (("--from=run", "--to=/proc/new"), ["/proc/new"]),
        (("--from=run", "--format=onnx"), ["tf1|nezha_tf|hugging_face"]),
        (("--from=none",), ["no checkpoint at none"]),
    ]
    assert_each_one_line(PROGRAM, ("--to=new",), mistakes, folder)
    assert sorted(os.listdir(folder)) == ["hf", "run"]


def test_the_flag_from_is_a_field_of_another_name():
    settings = settings_of(ConversionSettings, "--from=run", "--drop=cls/,crf/")
    assert settings == ConversionSettings(source="run", drop=("cls/", "crf/"))
    assert changed_flags(settings) == {"from": "run", "drop": ("cls/", "crf/")}
    assert flags_of(settings)["from"] == "run" and "source" not in flags_of(settings)


def test_paths(folder):
    (folder / "empty").mkdir()
    for part, values in (
        ("--from is needed", {}),
        ("--to is needed", {"source": "run", "to": ""}),
        ("no checkpoint at none", {"source": "none"}),
        ("no weights in empty", {"source": "empty"}),
        ("--to=empty exists already", {"source": "run", "to": "empty/"}),
        ("cannot read config none.json", {"source": "run", "config_file": "none.json"}),
        ("cannot read vocabulary none.txt", {"source": "run", "vocab_file": "none.txt"}),
        ("no checkpoint at run/model.ckpt-8", {"source": "run/model.ckpt-8"}),
    ):
        assert_refused(part, **values)
    (folder / "hf" / "config.json").unlink()
    assert_refused("or name it (--bert_config_file, --config_file)", source="hf")


def test_a_configuration_of_another_model(folder):
    rows = weights_in("run/model.ckpt-7")["bert/embeddings/word_embeddings"].shape[0] + 1
    (folder / "cut.json").write_text('{"vocab_size"')
    nezha = {"position_encoding": "functional_relative", "use_relative_position": True}
    for part, changes in (
        ("config that belongs to it (vocab_size says the number", {"vocab_size": rows}),
        ("has 2 layers, but its configuration 3 (num_hidden_layers)", {"num_hidden_layers": 3}),
        ("has 2 layers, but its configuration 1 (num_hidden_layers)", {"num_hidden_layers": 1}),
        ("and the model's is", {"hidden_size": 12 * 7}),
        ("is not a multiple of num_attention_heads 5", {"num_attention_heads": 5}),
        ("has bert/embeddings/position_embeddings, which no such model has", nezha),
    ):
        assert_refused(part, source="run", config_file=changed("c.json", **changes))
    assert_refused("cut.json is not JSON", source="run", config_file="cut.json")


def test_a_vocabulary_of_another_model(folder):
    write_vocabulary(folder / "large.txt", 99)
    (folder / "latin.txt").write_bytes(b"[PAD]\n\xe9\n")
    assert_refused("large.txt: the vocabulary has 99 tokens", source="run", vocab_file="large.txt")
    assert_refused("latin.txt, line 2: not UTF-8", source="run", vocab_file="latin.txt")


def test_damaged_weights(folder):
    data = folder / "run" / "model.ckpt-7.data-00000-of-00001"
    whole = data.read_bytes()
    tensors = load_file("hf/model.safetensors")
    content = (folder / "hf" / "model.safetensors").read_bytes()
    name = "cls.predictions.bias"
    for value, part in (
        (np.full_like(tensors[name], np.nan), "holds NaN or infinity"),
        (np.full_like(tensors[name], 1e5), "too large for --dtype=float16"),
        (tensors[name].astype("int8"), "int8; only floating-point weights"),
    ):
        save_file({**tensors, name: value}, "hf/model.safetensors")
        assert_refused(part, source="hf", dtype="float16")
    (folder / "hf" / "model.safetensors").write_bytes(content[: len(content) // 2])
    assert_refused("hf/model.safetensors is damaged", source="hf")
    data.write_bytes(whole[: len(whole) // 2])
    assert_refused("checkpoint run/model.ckpt-7 is", source="run")
    data.unlink()
    assert_refused("checkpoint run/model.ckpt-7 is", source="run")
    data.write_bytes(whole)
    index = folder / "run" / "model.ckpt-7.index"
    index.write_bytes(index.read_bytes()[:-9])
    assert_refused("checkpoint run/model.ckpt-7 is unreadable", source="run")


def test_other_weights(folder):
    config = {"config_file": "run/bert_config.json"}
    save_file({"a": np.ones(2)}, "a.safetensors")
    assert_refused("names of BERT, NEZHA or ALBERT, but a", source="a.safetensors", **config)
    save_file({"classifier.bias": np.ones((), "float32")}, "a.safetensors")
    assert_refused("a.safetensors has 0 layers", source="a.safetensors", **config)
    for prefix in ("cls/prediction/", "bert.pooler"):
        assert_refused(f"--drop={prefix} begins no name of", source="run", drop=["cls/", prefix])
    assert_refused("nothing", source="run", drop=["bert/", "cls/"], allow_missing=["bert/"])


def test_a_task_without_its_head(folder):
    (folder / "run" / "task.json").write_text(json.dumps(CLASSIFICATION))
    assert_refused("lacks output_weights, output_bias;", source="run", drop=["cls/"])
