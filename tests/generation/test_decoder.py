"""Decoding with a cache equals a full pass over each single example."""

import numpy as np
import pytest
import tensorflow as tf
from generation_models import (
    FORMATS_OF_ENCODINGS,
    MASK,
    name_of,
    next_logits,
    random_model,
    random_sources,
)

from nezha_tf.generation.decoder import Decoder
from nezha_tf.generation.sources import pad_left
from nezha_tf.generation.target_format import TargetFormat

BEAMS, LENGTH = 3, 3


@pytest.mark.parametrize("encoding, target_format", FORMATS_OF_ENCODINGS, ids=name_of)
def test_cached_logits_equal_full_passes(encoding, target_format):
    assert_cached_equals_full(random_model(encoding, layers=2), target_format)


@pytest.mark.parametrize(
    "prediction, sizes",
    (
        ("shift", {"num_hidden_groups": 1, "embedding_size": 6, "layers": 3}),  # as ALBERT
        ("masked", {"layer_mix": True, "layers": 2}),
    ),
)
def test_layers_that_share_weights_and_mixtures_of_layers(prediction, sizes):
    model = random_model("absolute", **sizes)
    assert_cached_equals_full(model, TargetFormat(target_prediction=prediction))


def assert_cached_equals_full(model, target_format):
    """For each step and each beam, with hypotheses that change their beams all the time."""
    sources = random_sources(lengths=(3, 7))
    decoder = Decoder(model, target_format, MASK)
    step = tf.function(decoder.step)
    rng = np.random.default_rng(2)
    logits, source, cache = decoder.start(*pad_left(sources, 9), BEAMS, LENGTH)
    for row, ids in enumerate(sources):
        expected = next_logits(model, ids, [[]], target_format)
        np.testing.assert_allclose(logits[row : row + 1], expected, atol=1e-5)
    targets = np.zeros((len(sources), BEAMS, 0), int)
    for _ in range(LENGTH):
        tokens = rng.integers(5, 30, (len(sources), BEAMS, 1))
        targets = np.concatenate([targets, tokens], axis=-1)
        logits, cache = step(source, cache, tf.constant(tokens[..., 0], tf.int32))
        for row, ids in enumerate(sources):
            expected = next_logits(model, ids, targets[row], target_format)
            np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        parents = rng.integers(0, BEAMS, (len(sources), BEAMS))
        targets = np.take_along_axis(targets, parents[..., None], axis=1)
        cache = cache.follow(tf.constant(parents, tf.int32))
