"""RoFormer's weights and configuration, in TF1's names and in Hugging Face's layout."""

import json
import re

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    TAGGING,
    assert_equal,
    config_of,
    convert,
    weights_in,
    weights_like,
    write_model,
)
from conftest import GOLDEN
from hugging_face_peer import needs_transformers
from safetensors.numpy import load_file, save_file

import nezha_tf
from nezha_tf import NezhaConfig, NezhaForMaskedLM
from nezha_tf.util.errors import UserError

pytestmark = pytest.mark.usefixtures("no_peer")
PEER = GOLDEN / "hugging_face_roformer"
POOLER = "bert/pooler/"


def write_run(folder, kind, task=None, without=(), **changes):
    """Writes a model of rotary positions as a run leaves it; returns its weights."""
    rng = np.random.default_rng(len(kind))
    settings = {"position_encoding": "rotary", "max_position_embeddings": 256, **changes}
    config = config_of(rng, **settings)
    weights = weights_like(rng, kind, config)
    weights = {name: value for name, value in weights.items() if not name.startswith(without)}
    write_model(folder, config, weights, task)
    return weights


def test_a_masked_lm_comes_back_bit_by_bit(tmp_path):
    """Without a flag, though it has no pooler: no RoFormer has one."""
    weights = write_run(tmp_path / "run", "masked_lm", without=(POOLER,))
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


def test_a_published_folder_opens_as_a_model():
    """The folder of transformers itself; a pooler, which it lacks, stays random."""
    model = nezha_tf.checkpoints.folder.open_folder(PEER).make_model()
    assert type(model) is NezhaForMaskedLM and model.config.position_encoding == "rotary"


def test_what_reads_a_pooler_is_refused_or_left_out(tmp_path):
    write_run(tmp_path / "pretraining", "pretraining")
    write_run(tmp_path / "classification", "classification", CLASSIFICATION)
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
    values = json.loads((PEER / "config.json").read_text())
    values["architectures"] = ["RoFormerForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    weights = load_file(PEER / "model.safetensors")
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
    theirs = json.loads((PEER / "config.json").read_text())
    ours = NezhaConfig.from_dict(theirs).to_dict()
    for values in (theirs, ours):
        (tmp_path / "config.json").write_text(json.dumps({**values, "rotary_value": True}))
        with pytest.raises(UserError, match="rotary_value true is not supported"):
            NezhaConfig.from_json_file(tmp_path / "config.json")


@needs_transformers
@pytest.mark.parametrize(
    "kind, task, outputs",
    [
        ("encoder", None, []),
        ("masked_lm", None, ["masked_lm_logits"]),
        ("tagging", TAGGING, ["logits"]),
        ("reading_comprehension", None, ["start_logits", "end_logits"]),
        ("multiple_choice", None, ["logits"]),
    ],
)
def test_outputs_are_those_of_transformers(tmp_path, with_peer, kind, task, outputs):
    """On 3 x 200 tokens, there and back: within 1e-5."""
    act = "gelu_erf" if task else "gelu"
    weights = write_run(tmp_path / "run", kind, task, (POOLER,), hidden_act=act)
    for source, layout in (("run", "hugging_face"), ("hugging_face", "nezha_tf")):
        report = convert(tmp_path / source, tmp_path / layout, layout)
        assert "3 x 200 random tokens" in report and "transformers" in report, report
        found = dict(re.findall(r"  (\w+) +(\d\.\de[+-]\d+)$", report, re.MULTILINE))
        assert set(found) == {"sequence_output", *outputs}
        assert all(float(value) <= 1e-5 for value in found.values()), found
    assert_equal(weights_in(tmp_path / "nezha_tf" / "model.ckpt-0"), weights)
