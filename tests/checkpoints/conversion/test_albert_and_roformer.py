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
)
from conftest import GOLDEN
from safetensors.numpy import load_file, save_file

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForMaskedLM, NezhaForPreTraining, checkpoints
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
    rng = np.random.default_rng(7)
    config = config_of(rng, **{**SIZES, **changes})
    write_model(folder, config, weights_like(rng, "encoder", config))
    return config


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


@pytest.mark.parametrize(
    "changes, layout, message",
    [
        ({"position_encoding": "rotary"}, "hugging_face", "'rotary' with embedding_size 5 and"),
        ({"embedding_size": None}, "hugging_face", "with no embedding_size and num_hidden_groups"),
        ({"num_hidden_groups": None}, "hugging_face", "embedding_size 5 and no num_hidden_groups"),
        ({"position_encoding": "functional_relative"}, "tf1", "num_hidden_groups 2 has no counter"),
        ({"embedding_size": None}, "tf1", "embedding_size None has no counterpart in TF1"),
        ({"num_hidden_groups": None}, "tf1", "embedding_size 5 has no counterpart in TF1"),
    ],
)
def test_what_the_originals_have_not_is_refused(tmp_path, changes, layout, message):
    write_albert(tmp_path / "run", **changes)
    with pytest.raises(UserError, match=message) as error:
        convert(tmp_path / "run", tmp_path / "there", layout)
    assert "\n" not in str(error.value) and not (tmp_path / "there").exists()


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


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("albert", {"num_hidden_groups": 4}, 'has 2 groups .* put "num_hidden_groups": 2 into'),
        ("albert", {"num_hidden_groups": 1}, "has 2 groups of layers, but by the .* it has 1"),
        ("albert", {"num_hidden_groups": None}, 'of 2 groups, .* "num_hidden_groups": 2 into it'),
        ("albert", {"embedding_size": 6}, 'of width 5, .* of width 6 .* "embedding_size": 5 into'),
        ("albert", {"embedding_size": None}, 'of width 5, .* put "embedding_size": 5 into it'),
        ("plain", {"num_hidden_groups": 2}, r"of 4 layers, .* 2 groups \(num_hidden_groups\): rem"),
        ("plain", {"embedding_size": 5}, r"of width 5 \(embedding_size\): remove this key"),
        ("same_width", {"embedding_size": ...}, "lacks bert/encoder/embedding_hidden_mapping_in/"),
    ],
)
def test_a_checkpoint_that_contradicts_the_configuration(
    tmp_path, checkpoint_paths, name, changes, message
):
    """One line, which says what to write into the configuration, of both ways to read weights."""
    folder, config = checkpoint_paths[name]
    sizes = {key: config.hidden_size if v is ... else v for key, v in changes.items()}
    wrong = dataclasses.replace(config, **sizes)
    wrong.to_json_file(tmp_path / "wrong.json")
    with pytest.raises(UserError, match=message) as loaded:
        checkpoints.load(NezhaEncoder(wrong), folder / "model.ckpt-7", may_be_missing=("bert/",))
    with pytest.raises(UserError, match=message) as converted:
        convert(folder, tmp_path / "new", "nezha_tf", config_file=str(tmp_path / "wrong.json"))
    for error in (loaded, converted):
        assert "\n" not in str(error.value) and str(folder) in str(error.value)


def write_roformer(folder, kind, task=None, without=()):
    """Writes a model of rotary positions as a run leaves it; returns its weights."""
    rng = np.random.default_rng(len(kind))
    config = config_of(rng, position_encoding="rotary", max_position_embeddings=256)
    weights = weights_like(rng, kind, config)
    weights = {name: value for name, value in weights.items() if not name.startswith(without)}
    write_model(folder, config, weights, task)
    return weights


def test_a_masked_lm_comes_back_bit_by_bit(tmp_path):
    """Without a flag, though it has no pooler: no RoFormer has one."""
    weights = write_roformer(tmp_path / "run", "masked_lm", without=(POOLER,))
    report = convert(tmp_path / "run", tmp_path / "there", "hugging_face")
    assert "rotary, masked lm" in report and "missing" in report
    values = json.loads((tmp_path / "there" / "config.json").read_text())
    assert values["model_type"] == "roformer"
    assert values["architectures"] == ["RoFormerForMaskedLM"]
    assert not {"position_encoding", "max_relative_position"} & set(values)
    names = load_file(tmp_path / "there" / "model.safetensors")
    assert {name.split(".")[0] for name in names} == {"roformer", "cls"}
    convert(tmp_path / "there", tmp_path / "back", "nezha_tf")
    assert_equal(weights_in(tmp_path / "back" / "model.ckpt-0"), weights)
    configs = [
        NezhaConfig.from_json_file(tmp_path / name / "bert_config.json") for name in ("run", "back")
    ]
    assert configs[0] == configs[1] and configs[0].position_encoding == "rotary"


def test_a_published_roformer_opens_as_a_model():
    """The folder of transformers itself; a pooler, which it lacks, stays random."""
    model = open_folder(ROFORMER).make_model()
    assert type(model) is NezhaForMaskedLM and model.config.position_encoding == "rotary"


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


def test_what_no_model_here_has_is_refused(tmp_path):
    """In a file of Hugging Face's, and in one of TF1's."""
    theirs = json.loads((ROFORMER / "config.json").read_text())
    ours = NezhaConfig.from_dict(theirs).to_dict()
    for values in (theirs, ours):
        (tmp_path / "config.json").write_text(json.dumps({**values, "rotary_value": True}))
        with pytest.raises(UserError, match="rotary_value true is not supported"):
            NezhaConfig.from_json_file(tmp_path / "config.json")
