"""Conversions with Hugging Face's own code on the other side, where it is installed."""

import json
import os
import re

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
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
from hugging_face_peer import needs_transformers

from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE
from nezha_tf.util.errors import UserError

pytestmark = needs_transformers


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


@pytest.mark.parametrize(
    "kind, task, outputs",
    [
        ("encoder", None, ["sequence_output", "pooled_output"]),
        ("masked_lm", None, ["masked_lm_logits"]),
        ("classification", CLASSIFICATION, ["logits"]),
        ("tagging", TAGGING, ["logits"]),
        ("reading_comprehension", None, ["start_logits", "end_logits"]),
        ("multiple_choice", None, ["logits"]),
    ],
)
def test_random_models(tmp_path, kind, task, outputs):
    """There in another position encoding for each, and back; the pooler of some is not used."""
    rng = np.random.default_rng(len(kind))
    config = config_of(rng, max_position_embeddings=256, hidden_act="gelu_erf")
    weights = weights_like(rng, kind, config)
    write_model(tmp_path / "run", config, weights, task)
    for source, layout in (("run", "hugging_face"), ("hugging_face", "nezha_tf")):
        found, _ = compare(tmp_path / source, tmp_path / layout, layout)
        assert_close(found, "sequence_output", *outputs)
    assert_equal(weights_in(tmp_path / "nezha_tf" / "model.ckpt-0"), weights)


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


class Intruder:
    """An object whose pickle makes a folder when it is read."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickle_of_more_than_weights_is_refused(tmp_path):
    import torch

    (tmp_path / "bert_config.json").write_text(json.dumps(UNILM))
    weights = unilm_weights(np.random.default_rng(0), UNILM, old=True)
    tensors = {name: torch.tensor(value) for name, value in weights.items()}
    torch.save({**tensors, "b": Intruder(str(tmp_path / "made"))}, tmp_path / "a.bin")
    with pytest.raises(UserError, match=r"a pickle of more than weights .*mkdir"):
        convert(tmp_path / "a.bin", tmp_path / "new", "tf1")
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "bert_config.json"]
