"""A user's own position encoding: one assignment registers it, and no file of ours changes."""

import importlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import REPOSITORY
from generation_models import MASK, next_logits, random_model, random_sources
from helpers import random_batch
from small_encoders import SIZES, batch_of

from nezha_tf import (
    AdamWeightDecay,
    NezhaConfig,
    NezhaEncoder,
    NezhaForPreTraining,
    TargetFormat,
    checkpoints,
)
from nezha_tf.checkpoints.conversion_weights import Weights
from nezha_tf.checkpoints.layouts import check_format
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.generation.decoder import Decoder
from nezha_tf.generation.sources import pad_left
from nezha_tf.modeling.attention import SelfAttention
from nezha_tf.modeling.flops import training_flops
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.pictures import relative_positions
from nezha_tf.training.recipe import Recipe
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import UserError

SLOPES = "bert/encoder/positions/slopes"


@pytest.fixture(autouse=True)
def encoding(monkeypatch):
    """The encoding's name, registered only for one test; other tests are about our encodings."""
    before = dict(POSITION_ENCODINGS)
    monkeypatch.delitem(sys.modules, "linear_bias", raising=False)
    yield importlib.import_module("linear_bias").__name__
    POSITION_ENCODINGS.clear()
    POSITION_ENCODINGS.update(before)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_recipe_is_this_module(language):
    text = (REPOSITORY / "docs" / language / "extending.md").read_text(encoding="utf-8")
    code = (REPOSITORY / "tests" / "linear_bias.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```" in text


def test_files_have_it(tmp_path, encoding):
    """Neither TF1 nor Hugging Face has such a model, so no keys of theirs are written."""
    config = NezhaConfig(**SIZES, position_encoding=encoding)
    assert "use_relative_position" not in config.to_dict()
    config.to_json_file(str(tmp_path / "config.json"))
    assert NezhaConfig.from_json_file(tmp_path / "config.json") == config
    for layout in ("tf1", "hugging_face"):
        with pytest.raises(UserError, match=f"'{encoding}' has no counterpart in"):
            check_format(layout, Weights("encoder", 1, {}, [], []), config, "float32")
    POSITION_ENCODINGS.pop(encoding)  # as for those who do not import it
    with pytest.raises(UserError, match="position_encoding must be one of functional_relative, "):
        NezhaConfig.from_json_file(tmp_path / "config.json")


def test_attention_against_numpy(encoding):
    encoder = NezhaEncoder(NezhaConfig(**SIZES, position_encoding=encoding))
    slopes = np.array([0.5, 0.1, 2.0])
    encoder.positions.slopes.assign(slopes)
    rng = np.random.default_rng(0)
    attention = SelfAttention(encoder.config)
    attention.build()
    weights = [rng.normal(size=w.shape) / 2 for w in attention.get_weights()]
    attention.set_weights(weights)
    states = rng.normal(size=(2, 9, 24))
    q, k = ((states @ weights[2 * n] + weights[2 * n + 1]).reshape(2, 9, 3, 8) for n in range(2))
    distance = np.abs(np.arange(9)[:, None] - np.arange(9))
    scores = np.einsum("bind,bjnd->bnij", q, k) / np.sqrt(8) - slopes[:, None, None] * distance
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    found = attention.probabilities(
        tf.constant(states, tf.float32),
        np.ones((1, 1, 1, 9), bool),
        encoder.positions.of_sequence(9),
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_reads_and_is_pretrained(tmp_path, encoding):
    config = NezhaConfig(**{**SIZES, "num_hidden_layers": 1}, position_encoding=encoding)
    keras.utils.set_random_seed(0)
    model = NezhaForPreTraining(config)
    outputs = model(
        {**batch_of(30), "masked_lm_positions": np.array([[1, 5], [2, 3]])}, all_outputs=True
    )
    assert outputs["masked_lm_logits"].shape == (2, 2, 97)
    step = TrainStep(
        tf.distribute.get_strategy(),
        model,
        Bidirectional().loss(),
        Recipe(AdamWeightDecay(1e-2)),
        jit_compile=False,
    )
    before = model.encoder.positions.slopes.numpy()
    norms = [float(step.on_batch(random_batch(config)).gradient_norm) for _ in range(2)]
    assert np.isfinite(norms).all()
    assert (model.encoder.positions.slopes.numpy() != before).all()
    # Its weights are in the checkpoint.
    checkpoints.save_tf1_checkpoint(model, tmp_path / "model.ckpt")
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
    np.testing.assert_array_equal(reader.get_tensor(SLOPES), model.encoder.positions.slopes)
    again = NezhaForPreTraining(config)
    assert checkpoints.load(again, tmp_path / "model.ckpt") == ([], [], "")
    np.testing.assert_array_equal(again.encoder.positions.slopes, model.encoder.positions.slopes)


def test_what_asks_the_class(encoding):
    config, plain = (
        NezhaConfig(**SIZES, position_encoding=name) for name in (encoding, "absolute")
    )
    assert training_flops(config, 30, 5) == training_flops(plain, 30, 5)
    with pytest.raises(UserError, match=f"{encoding} positions.*no table"):
        relative_positions.tables_of(NezhaEncoder(config))


def test_decoding_with_a_cache_equals_full_passes(encoding):
    """The base class computes the positions of all beams' keys."""
    model, target_format = random_model(encoding, layers=2), TargetFormat()
    sources, rng = random_sources(), np.random.default_rng(2)
    decoder = Decoder(model, target_format, MASK)
    _, source, cache = decoder.start(*pad_left(sources, 9), 3, 4)
    targets = np.zeros((len(sources), 3, 0), int)
    for _ in range(3):
        tokens = rng.integers(5, 30, (len(sources), 3, 1))
        targets = np.concatenate([targets, tokens], axis=-1)
        logits, cache = decoder.step(source, cache, tf.constant(tokens[..., 0], tf.int32))
        for row, ids in enumerate(sources):
            expected = next_logits(model, ids, targets[row], target_format)
            np.testing.assert_allclose(logits[row], expected, atol=1e-5)
