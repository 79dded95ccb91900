"""ALBERT and RoFormer: what lies in their folders, and what contradicts or has no counterpart."""

import dataclasses
import json

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    assert_equal,
    config_of,
    convert,
    weights_in,
    weights_like,
    write_model,
    write_random,
)
from conftest import GOLDEN
from safetensors.numpy import load_file, save_file

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.util.errors import UserError

ROFORMER = GOLDEN / "hugging_face_roformer"
POOLER = "bert/pooler/"
SIZES = {
    "position_encoding": "absolute",
    "num_hidden_layers": 4,
    "num_hidden_groups": 2,
    "embedding_size": 5,
    "max_position_embeddings": 256,
}


def write_albert(folder, **changes):
    """Writes the encoder of an ALBERT as a run leaves it; returns its configuration."""
    return write_random(folder, seed=7, **{**SIZES, **changes})[0]


def test_an_albert_as_google_published_it(tmp_path):
    """With its names of files, and with further keys, which change nothing."""
    config = config_of(np.random.default_rng(0), **SIZES, hidden_act="gelu")
    weights = weights_like(np.random.default_rng(1), "pretraining", config)
    write_model(tmp_path, config, weights, name="model.ckpt-best")
    written = tmp_path / "bert_config.json"
    values = json.loads(written.read_text())
    for key in ("position_encoding", "max_relative_position", "layer_norm_eps"):
        del values[key]
    del values["use_relative_position"]
    values |= {"net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0}
    values |= {"inner_group_num": 1, "down_scale_factor": 1, "classifier_dropout_prob": 0.1}
    written.unlink()
    (tmp_path / "albert_config.json").write_text(json.dumps(values))
    opened = open_folder(tmp_path)
    model = opened.make_model()
    assert opened.config == config and type(model) is NezhaForPreTraining
    assert_equal({name: v.numpy() for name, v in tf1_names(model).items()}, weights)


@pytest.fixture(scope="module")
def checkpoint_paths(tmp_path_factory):
    """Returns {name: (folder of a model with random weights, its configuration)}."""
    found = {}
    for name, changes in (
        ("albert", {}),
        ("same_width", {"embedding_size": None}),
        ("plain", {"embedding_size": None, "num_hidden_groups": None}),
    ):
        folder = tmp_path_factory.mktemp(name)
        found[name] = folder, write_albert(folder, **changes)
    return found


WRONG = (
    ("albert", {"num_hidden_groups": 4}, 'has 2 groups .* put "num_hidden_groups": 2 into'),
    ("albert", {"num_hidden_groups": 1}, "has 2 groups of layers, but by the .* it has 1"),
    ("albert", {"num_hidden_groups": None}, 'of 2 groups, .* "num_hidden_groups": 2 into it'),
    ("albert", {"embedding_size": 6}, 'of width 5, .* of width 6 .* "embedding_size": 5 into'),
    ("albert", {"embedding_size": None}, 'of width 5, .* put "embedding_size": 5 into it'),
    ("plain", {"num_hidden_groups": 2}, r"of 4 layers, .* 2 groups \(num_hidden_groups\): rem"),
    ("plain", {"embedding_size": 5}, r"of width 5 \(embedding_size\): remove this key"),
    ("same_width", {"embedding_size": ...}, "lacks bert/encoder/embedding_hidden_mapping_in/"),
)


@pytest.mark.parametrize("name, changes, message", WRONG)
def test_a_checkpoint_that_contradicts_the_configuration(checkpoint_paths, name, changes, message):
    """One line, which says what to write into the configuration."""
    folder, config = checkpoint_paths[name]
    sizes = {key: config.hidden_size if v is ... else v for key, v in changes.items()}
    model = NezhaEncoder(dataclasses.replace(config, **sizes))
    with pytest.raises(UserError, match=message) as error:
        checkpoints.load(model, folder / "model.ckpt-7", may_be_missing=("bert/",))
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


def test_the_converter_names_its_flag_then(tmp_path, checkpoint_paths):
    folder, config = checkpoint_paths["albert"]
    dataclasses.replace(config, num_hidden_groups=4).to_json_file(tmp_path / "wrong.json")
    with pytest.raises(UserError, match=r"has 2 groups .*, or pass another with --config_file$"):
        convert(folder, tmp_path / "new", "nezha_tf", config_file=str(tmp_path / "wrong.json"))


def write_roformer(folder, kind, task=None):
    """Writes a model of rotary positions as a run leaves it."""
    sizes = {"position_encoding": "rotary", "max_position_embeddings": 256}
    write_random(folder, kind, task, seed=len(kind), **sizes)


def test_what_reads_a_pooler_is_refused_or_left_out(tmp_path):
    write_roformer(tmp_path / "pretraining", "pretraining")
    write_roformer(tmp_path / "classification", "classification", CLASSIFICATION)
    for kind, drop in (
        ("pretraining", "bert/pooler/,cls/seq_relationship/"),
        ("classification", "bert/pooler/,output_weights,output_bias"),
    ):
        with pytest.raises(UserError, match="RoFormer, which has no pooler") as error:
            convert(tmp_path / kind, tmp_path / "no", "hugging_face")
        assert f"--drop={drop}" in str(error.value) and "\n" not in str(error.value)
        convert(tmp_path / kind, tmp_path / f"{kind}_hf", "hugging_face", drop=drop.split(","))
    values = json.loads((tmp_path / "classification_hf" / "config.json").read_text())
    assert values["architectures"] == ["RoFormerModel"] and "id2label" not in values
    with pytest.raises(UserError, match="position_encoding 'rotary' has no counterpart in TF1"):
        convert(tmp_path / "pretraining", tmp_path / "no", "tf1")
    assert not (tmp_path / "no").exists()


def test_a_classifier_of_transformers_is_refused_in_one_line(tmp_path):
    """Its head is of two layers, on the output and not on a pooler."""
    values = json.loads((ROFORMER / "config.json").read_text())
    values["architectures"] = ["RoFormerForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    weights = load_file(ROFORMER / "model.safetensors")
    weights = {name: value for name, value in weights.items() if name.startswith("roformer.")}
    body = dict(weights)
    for part, rows in (("dense", 16), ("out_proj", 3)):
        weights[f"classifier.{part}.weight"] = np.ones((rows, 16), np.float32)
        weights[f"classifier.{part}.bias"] = np.ones(rows, np.float32)
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="lacks output_weights") as error:
        convert(tmp_path, tmp_path / "new", "nezha_tf")
    assert "has classifier.dense.bias" in str(error.value) and "\n" not in str(error.value)
    allowed = ["classifier.", "output_"]
    convert(tmp_path, tmp_path / "new", "nezha_tf", allow_missing=allowed)
    assert len(weights_in(tmp_path / "new" / "model.ckpt-0")) == len(body) - 1  # the sinusoids


def test_what_no_model_here_has_is_refused():
    """In a file of Hugging Face's, and in one of TF1's."""
    theirs = json.loads((ROFORMER / "config.json").read_text())
    for values in (theirs, NezhaConfig.from_dict(theirs).to_dict()):
        with pytest.raises(UserError, match="rotary_value true is not supported"):
            NezhaConfig.from_dict({**values, "rotary_value": True})
