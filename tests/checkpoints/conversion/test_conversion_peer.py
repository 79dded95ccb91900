"""Conversions with Hugging Face's own code on the other side, where it is installed."""

import json
import re

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    MULTIPLE_CHOICE,
    TAGGING,
    UNILM,
    assert_equal,
    config_of,
    convert,
    unilm_weights,
    weights_in,
    weights_like,
    weights_of_originals,
    write_model,
)
from conftest import GOLDEN
from helpers import GOLDEN_MODELS
from hugging_face_peer import needs_transformers, write_peer_anew
from safetensors.numpy import load_file

from nezha_tf import NezhaConfig
from nezha_tf.checkpoints.kinds import kinds
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE

pytestmark = [needs_transformers, pytest.mark.processes]


def compare(source, target, layout, **changes):
    """Converts; returns {output: largest difference} and the report, which is to name both."""
    report = convert(source, target, layout, **changes)
    assert "not compared" not in report and "transformers" in report, report
    return dict(re.findall(r"  (\w+) +(\d\.\de[+-]\d+)$", report, re.MULTILINE)), report


def assert_close(differences, *names):
    assert set(names) <= set(differences)
    for name, value in differences.items():
        assert float(value) <= 1e-5, (name, value)


@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_golden_models(tmp_path, name):
    outputs = ("sequence_output", "pooled_output", "masked_lm_logits", "next_sentence_logits")
    found, report = compare(GOLDEN / name / "model.ckpt", tmp_path / "hf", "hugging_face")
    assert "3 x 200 random tokens: nezha_tf before, transformers after" in report
    assert_close(found, *outputs)
    found, report = compare(tmp_path / "hf", tmp_path / "tf1", "tf1")
    assert "3 x 200 random tokens: transformers before, nezha_tf after" in report
    assert_close(found, *outputs)
    assert_equal(weights_in(tmp_path / "tf1" / "bert_model.ckpt"), weights_of_originals(name))


ELECTRA = GOLDEN / "hugging_face_electra" / "config.json"
TASKS = {"classification": CLASSIFICATION, "tagging": TAGGING, "multiple_choice": MULTIPLE_CHOICE}
# The heads for texts of ELECTRA begin with such a layer.
ELECTRAS_WITH_POOLER = [("electra", "classification"), ("electra", "multiple_choice")]
SIZES = {
    "bert_or_nezha": {"hidden_act": "gelu_erf"},
    "albert": {
        "position_encoding": "absolute",
        "num_hidden_layers": 4,
        "num_hidden_groups": 2,
        "embedding_size": 5,
    },
    "roformer": {"position_encoding": "rotary", "hidden_act": "gelu_erf"},
    "electra": {},
}
# Every head once, and of the other families those that they name otherwise.
KINDS = {
    "bert_or_nezha": (
        *("encoder", "masked_lm", "classification"),
        *("tagging", "reading_comprehension", "multiple_choice"),
    ),
    "albert": ("pretraining", "classification", "reading_comprehension"),
    "roformer": ("masked_lm", "tagging"),
    "electra": ("masked_lm", "discriminator", "classification", "multiple_choice"),
}
ROWS = [(family, kind) for family, kinds_of_it in KINDS.items() for kind in kinds_of_it]


@pytest.mark.parametrize("family, kind", ROWS)
def test_random_models(tmp_path, family, kind):
    """On 3 x 200 tokens, there and back: within 1e-5; the pooler of some is not used."""
    rng = np.random.default_rng(len(kind))
    changes = {"max_position_embeddings": 256, **SIZES[family]}
    config = (
        NezhaConfig.from_json_file(ELECTRA) if family == "electra" else config_of(rng, **changes)
    )
    weights = weights_like(rng, kind, config)
    has_pooler = family in ("bert_or_nezha", "albert")
    if not has_pooler and (family, kind) not in ELECTRAS_WITH_POOLER:
        weights = {n: value for n, value in weights.items() if not n.startswith("bert/pooler/")}
    write_model(tmp_path / "run", config, weights, TASKS.get(kind))
    outputs = {"sequence_output", *kinds()[kind].outputs}
    outputs |= {"pooled_output"} if has_pooler and kind == "encoder" else set()
    for source, layout in (("run", "hugging_face"), ("hugging_face", "nezha_tf")):
        found, report = compare(tmp_path / source, tmp_path / layout, layout)
        assert "3 x 200 random tokens" in report
        assert_close(found, *outputs)
    assert_equal(weights_in(tmp_path / "nezha_tf" / "model.ckpt-0"), weights)


@pytest.mark.parametrize(
    "kind, sizes",
    [
        # There is a layer after the embeddings even if it changes no width.
        ("albert", {"embedding_size": 16, "num_hidden_groups": 1}),
        ("albert", {"embedding_size": 6, "num_hidden_layers": 5, "num_hidden_groups": 3}),
        ("roformer", {"embedding_size": 6}),
    ],
)
def test_other_sizes_of_transformers(tmp_path, kind, sizes):
    write_peer_anew(kind, tmp_path / "peer", 3, "gelu_new", sizes)
    for source, layout in (("peer", "nezha_tf"), ("nezha_tf", "hugging_face")):
        found, _ = compare(tmp_path / source, tmp_path / layout, layout)
        assert_close(found, "masked_lm_logits")
    stored = load_file(tmp_path / "peer" / "model.safetensors")
    stored.pop("roformer.encoder.embed_positions.weight", None)  # Sinusoids, so no weights.
    assert_equal(load_file(tmp_path / "hugging_face" / "model.safetensors"), stored)


def test_unilm_as_a_pickle(tmp_path):
    """Read by its code's spelling of old and its six rows; half precision beside it."""
    import torch

    config = {**UNILM, "max_position_embeddings": 256}
    weights = unilm_weights(np.random.default_rng(0), config, old=True)
    path = tmp_path / "unilm1-base-cased.bin"
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        torch.save({name: torch.tensor(value).to(dtype) for name, value in weights.items()}, path)
        target = tmp_path / str(dtype)
        found, _ = compare(path, target, "nezha_tf")
        assert_close(found, "masked_lm_logits", "next_sentence_logits")
        assert weights_in(target / "model.ckpt-0")[SEGMENT_TABLE].shape == (6, 8)
    found, _ = compare(target, tmp_path / "two", "hugging_face", type_vocab_size=2, dtype="float16")
    assert_close(found, "masked_lm_logits", "next_sentence_logits")
