"""ALBERT's weights and configurations: TF1's names, Hugging Face's layout, and what contradicts."""

import dataclasses
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
from hugging_face_peer import needs_transformers, write_peer_anew
from safetensors.numpy import load_file

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.util.errors import UserError

pytestmark = pytest.mark.usefixtures("no_peer")
PEER = GOLDEN / "hugging_face_albert"
SIZES = {
    "position_encoding": "absolute",
    "num_hidden_layers": 4,
    "num_hidden_groups": 2,
    "embedding_size": 5,
    "max_position_embeddings": 256,
}
KINDS = [
    ("encoder", None, ["pooled_output"]),
    ("masked_lm", None, ["masked_lm_logits"]),
    ("pretraining", None, ["masked_lm_logits", "next_sentence_logits"]),
    ("classification", CLASSIFICATION, ["logits"]),
    ("tagging", TAGGING, ["logits"]),
    ("reading_comprehension", None, ["start_logits", "end_logits"]),
    ("multiple_choice", None, ["logits"]),
]


def write_run(folder, kind="pretraining", task=None, **changes):
    """Writes a model as a run leaves it; returns its configuration and weights."""
    rng = np.random.default_rng(len(kind))
    config = config_of(rng, **{**SIZES, **changes})
    weights = weights_like(rng, kind, config)
    write_model(folder, config, weights, task)
    return config, weights


@pytest.mark.parametrize(
    "layout, kind, task",
    [
        ("tf1", "pretraining", None),
        ("hugging_face", "pretraining", None),
        ("hugging_face", "encoder", None),
        ("hugging_face", "classification", CLASSIFICATION),
    ],
)
def test_models_come_back_bit_by_bit(tmp_path, kind, task, layout):
    config, weights = write_run(tmp_path / "run", kind, task)
    convert(tmp_path / "run", tmp_path / "there", layout)
    if layout == "hugging_face":
        values = json.loads((tmp_path / "there" / "config.json").read_text())
        assert values["model_type"] == "albert" and values["architectures"][0][:6] == "Albert"
    convert(tmp_path / "there", tmp_path / "back", "nezha_tf")
    assert_equal(weights_in(tmp_path / "back" / "model.ckpt-0"), weights)
    assert NezhaConfig.from_json_file(tmp_path / "back" / "bert_config.json") == config


def test_a_folder_as_google_published_it(tmp_path):
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
    opened = model_folder.open_folder(tmp_path)
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
    write_run(tmp_path / "run", "encoder", **changes)
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
        found[name] = folder, write_run(folder, "encoder", **changes)[0]
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


def differences(report):
    assert "not compared" not in report and "transformers" in report, report
    return dict(re.findall(r"  (\w+) +(\d\.\de[+-]\d+)$", report, re.MULTILINE))


@needs_transformers
@pytest.mark.parametrize("kind, task, outputs", KINDS)
def test_outputs_are_those_of_transformers(tmp_path, with_peer, kind, task, outputs):
    """On 3 x 200 tokens, there and back: within 1e-5."""
    _, weights = write_run(tmp_path / "run", kind, task)
    for source, layout in (("run", "hugging_face"), ("hugging_face", "nezha_tf")):
        found = differences(convert(tmp_path / source, tmp_path / layout, layout))
        assert {"sequence_output", *outputs} <= set(found)
        assert all(float(value) <= 1e-5 for value in found.values()), found
    assert_equal(weights_in(tmp_path / "nezha_tf" / "model.ckpt-0"), weights)


@needs_transformers
@pytest.mark.parametrize(
    "kind, sizes",
    [
        # There is a layer after the embeddings even if it changes no width.
        ("albert", {"embedding_size": 16, "num_hidden_groups": 1}),
        ("albert", {"embedding_size": 6, "num_hidden_layers": 5, "num_hidden_groups": 3}),
        ("roformer", {"embedding_size": 6}),
    ],
)
def test_other_sizes_of_transformers(tmp_path, with_peer, kind, sizes):
    write_peer_anew(kind, tmp_path / "peer", 3, "gelu_new", sizes)
    for source, layout in (("peer", "nezha_tf"), ("nezha_tf", "hugging_face")):
        found = differences(convert(tmp_path / source, tmp_path / layout, layout))
        assert "masked_lm_logits" in found and all(float(v) <= 1e-5 for v in found.values()), found
    stored = load_file(tmp_path / "peer" / "model.safetensors")
    stored.pop("roformer.encoder.embed_positions.weight", None)  # Sinusoids, so no weights.
    assert_equal(load_file(tmp_path / "hugging_face" / "model.safetensors"), stored)
