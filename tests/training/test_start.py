"""Which weights a program starts from: those that the folder's model has."""

import dataclasses
import json
import os

import numpy as np
import pytest
from checkpoint_models import (
    UNILM,
    config_of,
    unilm_weights,
    weights_like,
    write_model,
    write_vocabulary,
)
from safetensors.numpy import save_file

import nezha_tf
from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints.convert import SourceModel
from nezha_tf.checkpoints.kinds import kinds
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.published import reading_warnings
from nezha_tf.generation.model import load_model, open_model
from nezha_tf.generation.settings import TrainedModelSettings
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import run as training_run
from nezha_tf.training import start
from nezha_tf.util.errors import UserError

COMMON = {"task": "pretraining", "objectives": "bidirectional", "max_seq_length": 8}
NAME = "bert/embeddings/word_embeddings"


@pytest.fixture
def folder(tmp_path):
    """Returns a function: task.json's uses_averages -> a folder whose averages are weights + 1."""

    def make(uses_averages, **settings):
        task = {**COMMON, "do_lower_case": True, "uses_averages": uses_averages, **settings}
        rng = np.random.default_rng(3)
        config = config_of(rng)
        write_model(tmp_path, config, weights_like(rng, "pretraining", config), task)
        return tmp_path, config

    return make


def is_averaged(folder, model):
    """Whether a model has the averages, for all weights or for none."""
    reader = start.loading.open_checkpoint(str(folder / "model.ckpt-7"))[1]
    shifts = {
        float(np.round(np.mean(variable.numpy() - reader.get_tensor(name)), 3))
        for name, variable in tf1_names(model).items()
    }
    assert shifts in ({0.0}, {1.0})
    return shifts == {1.0}


@pytest.mark.parametrize("uses_averages", [True, False])
@pytest.mark.parametrize("name", ["model.ckpt-7", "model.ckpt-7.index", ""])
def test_all_ways_to_a_model_give_the_same_weights(folder, uses_averages, name):
    path, config = folder(uses_averages)
    flags = {
        "bert_config_file": str(path / "bert_config.json"),
        "vocab_file": str(path / "vocab.txt"),
        "do_lower_case": True,
        "init_checkpoint": str(path / name),
    }
    for way in (flags, {"model_folder": str(path)}):
        of_tools, _ = load_model(open_model(TrainedModelSettings(**way)))
        assert is_averaged(path, of_tools) == uses_averages
    model = kinds()["pretraining"].model(config, 0)
    del flags["init_checkpoint"]
    settings = PretrainingSettings(**flags)
    line, *warnings = start.load_initial(model, str(path / name), (), settings)
    assert is_averaged(path, model) == ("moving averages" in line) == uses_averages
    assert not warnings
    model = kinds()["pretraining"].model(config, 0)
    (line,), step = start.load(model, str(path / name), (), settings)
    assert step == 7 and ("moving averages" in line) == uses_averages
    assert is_averaged(path, model) == uses_averages
    assert is_averaged(path, model_folder.open_folder(path).make_model()) == uses_averages


def test_a_permutation_lm_begins_with_a_masked_lm(folder):
    path, config = folder(False)
    model = kinds()["permutation"].model(config)
    flags = {"vocab_file": str(path / "vocab.txt"), "do_lower_case": True}
    settings = PretrainingSettings(**flags)
    (line,) = start.load_initial(model, str(path), Pretraining.fresh_names, settings)
    assert line.endswith("missing there, so random: query_stream/embedding")


def test_averages_that_are_not_there(folder):
    path, config = folder(True)
    weights = weights_like(np.random.default_rng(1), "pretraining", config)
    start.loading.tf1.write_tensors(path / "model.ckpt-7", weights)
    with pytest.raises(UserError, match=r"model\.ckpt-7 holds no moving averages of weights"):
        start.load(kinds()["pretraining"].model(config, 0), str(path), (), PretrainingSettings())


def test_all_ways_read_a_configuration_as_pytorch_does_beside_its_weights(tmp_path, capsys):
    """One without `model_type`, as UniLM's; each way says so in the lines of the converter."""
    weights = unilm_weights(np.random.default_rng(0), UNILM, old=False)
    save_file(weights, tmp_path / "model.safetensors")
    config_file, vocab_file = tmp_path / "bert_config.json", tmp_path / "vocab.txt"
    config_file.write_text(json.dumps(UNILM))
    write_vocabulary(vocab_file, UNILM["vocab_size"])
    notes = SourceModel(str(tmp_path)).notes
    assert [line.partition(": read as ")[0] for line in notes] == [
        f"{config_file} has no model_type",
        "the model has six segment rows",
    ]

    def check(config):
        assert (config.hidden_act, config.layer_norm_eps) == ("gelu_erf", 1e-5)

    flags = {
        "bert_config_file": str(config_file),
        "vocab_file": str(vocab_file),
        "do_lower_case": True,
    }
    for way in ({"model_folder": str(tmp_path)}, {**flags, "init_checkpoint": str(tmp_path)}):
        model, _ = load_model(open_model(TrainedModelSettings(**way)))
        check(model.config)
        assert capsys.readouterr().err.splitlines() == notes
    check(nezha_tf.load(tmp_path)[1].config)
    assert capsys.readouterr().err.splitlines() == notes
    # A run from these weights, and a later one that is given the same file.
    for initial in ({"init_checkpoint": str(tmp_path / "model.safetensors")}, {}):
        task = Pretraining(PretrainingSettings(**flags, **initial, max_seq_length=16))
        check(task.config)
        assert task.notes[:2] == notes
    # Beside weights of TF1 the same file means what TF1's programs make of it.
    (tmp_path / "model.safetensors").unlink()
    task = Pretraining(PretrainingSettings(**flags, max_seq_length=16))
    assert task.config.hidden_act == "gelu" and notes[0] not in task.notes


def test_another_vocabulary_or_case_beside_the_weights_is_told(folder, capsys):
    path, config = folder(False, do_lower_case=False)
    other = path.with_name("other.txt")
    tokens = (path / "vocab.txt").read_text().splitlines()
    other.write_text("\n".join(reversed(tokens)))
    flags = {"vocab_file": str(other), "do_lower_case": True}
    model = kinds()["pretraining"].model(config, 0)
    _, vocabulary, case = start.load_initial(model, str(path), (), PretrainingSettings(**flags))
    config_file = str(path / "bert_config.json")
    way = {"bert_config_file": config_file, "init_checkpoint": str(path)}
    load_model(open_model(TrainedModelSettings(**flags, **way)))
    assert capsys.readouterr().err == f"{vocabulary}\n{case}\n"
    assert "is another vocabulary than" in vocabulary and "--nodo_lower_case" in case
    (path / "task.json").unlink()
    (path / "vocab.txt").unlink()
    assert reading_warnings(str(path), *flags.values()) == []
    (path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    assert len(reading_warnings(str(path), *flags.values())) == 1
    # A vocabulary with capitals, of a model whose case no file says.
    (path / "tokenizer_config.json").unlink()
    other.write_text("\n".join([*tokens, "The"]))
    [line] = reading_warnings(str(path), *flags.values())
    assert f"such as The in {other}; if the model is cased, pass --nodo_lower_case" in line
    assert reading_warnings(str(path), str(other), False) == []
    (path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert reading_warnings(str(path), *flags.values()) == []


@pytest.mark.parametrize("name", ["model.ckpt-7", ""])
def test_files_beside_the_weights_are_taken_where_flags_name_none(folder, tmp_path, name):
    path, _ = folder(False)
    beside = {
        "bert_config_file": str(path / "bert_config.json"),
        "vocab_file": str(path / "vocab.txt"),
    }
    plain = PretrainingSettings(init_checkpoint=str(path / name))
    assert start.with_files_beside(plain) == dataclasses.replace(plain, **beside)
    for flag in beside:
        given = dataclasses.replace(plain, **{flag: "mine"})
        assert start.with_files_beside(given) == dataclasses.replace(
            given, **{**beside, flag: "mine"}
        )
    for file in beside.values():
        os.remove(file)
    assert start.with_files_beside(plain) == plain
    assert start.with_files_beside(PretrainingSettings()) == PretrainingSettings()
    with pytest.raises(UserError, match="--bert_config_file is needed"):
        training_run.run(dataclasses.replace(plain, do_train=True, output_dir=str(path)), None)


def test_files_beside_weights_of_hugging_face(tmp_path):
    folder = tmp_path / "published"
    folder.mkdir()
    for name in ("model.safetensors", "config.json", "vocab.txt"):
        (folder / name).touch()
    for where in (folder, folder / "model.safetensors"):
        found = start.with_files_beside(PretrainingSettings(init_checkpoint=str(where)))
        assert found.bert_config_file == str(folder / "config.json")
        assert found.vocab_file == str(folder / "vocab.txt")
