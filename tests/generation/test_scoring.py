"""Scores against one full pass for each token, and against the scores of beam search."""

import numpy as np
import pytest
import tensorflow as tf
from generation_models import (
    CLS,
    FORMATS_OF_ENCODINGS,
    MASK,
    SEP,
    name_of,
    next_logits,
    random_model,
    random_sources,
    vocabulary_of,
)

from nezha_tf.generation.generator import Generator
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.score import PseudoScorer, TargetScorer
from nezha_tf.generation.sources import pad_left, pad_right
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize("encoding, target_format", FORMATS_OF_ENCODINGS[::2], ids=name_of)
def test_one_pass_equals_a_pass_for_each_token(encoding, target_format):
    model = random_model(encoding)
    sources, targets = random_sources(), [[6, 7, 8, 9, SEP], [10], [11, 12, 11]]
    scorer = TargetScorer(model, vocabulary_of(30), target_format)
    found = scorer(*pad_left(sources, 8), *pad_right(targets, 6))
    assert found.shape == (3, 6)
    for row, source, target in zip(found, sources, targets, strict=True):
        for index, token in enumerate(target):
            logits = next_logits(model, source, [target[:index]], target_format)[0]
            expected = tf.nn.log_softmax(logits)[token]
            np.testing.assert_allclose(row[index], expected, atol=1e-5)
        assert not row[len(target) :].any()


@pytest.mark.parametrize(
    "mode, prediction", (("seq2seq", "masked"), ("left_to_right", "masked"), ("seq2seq", "shift"))
)
def test_a_hypothesis_has_the_score_of_its_search(mode, prediction):
    """For any rules and any length penalty of the search."""
    target_format = TargetFormat(mode=mode, target_prediction=prediction)
    model, vocabulary, sources = random_model("rotary"), vocabulary_of(30), random_sources()
    options = GenerationOptions(
        max_length=6, num_return_sequences=3, min_length=3, no_repeat_ngram_size=1
    )
    generator = Generator(model, vocabulary, target_format, options, jit_compile=False)
    hypotheses = generator(*pad_left(sources, 9))
    scorer = TargetScorer(model, vocabulary, target_format)
    for rank in range(3):
        ids = hypotheses.ids[:, rank].numpy()
        mask = np.arange(6) < hypotheses.lengths[:, rank].numpy()[:, None]
        found = scorer(*pad_left(sources, 7), ids, mask).sum(axis=1)
        np.testing.assert_allclose(found, hypotheses.log_probs[:, rank], atol=1e-5)


def test_tokens_masked_in_turn():
    model, text = random_model(), [7, 9, 7, 20, 21]
    scorer = PseudoScorer(model, vocabulary_of(30))
    found = scorer(text, 10, batch_size=3)
    assert found.shape == (5,)
    for index, token in enumerate(text):
        ids = [CLS, *text, SEP]
        ids[index + 1] = MASK
        ids = tf.constant([ids])
        outputs = model(
            {
                "input_ids": ids,
                "input_mask": tf.ones_like(ids),
                "segment_ids": tf.zeros_like(ids),
                "masked_lm_positions": tf.constant([[index + 1]]),
            },
            all_outputs=True,
        )
        expected = tf.nn.log_softmax(outputs["masked_lm_logits"][0, 0])[token]
        np.testing.assert_allclose(found[index], expected, atol=1e-5)


def test_no_room_is_named():
    scorer = TargetScorer(random_model("absolute"), vocabulary_of(30), TargetFormat())
    with pytest.raises(UserError, match=r"source of 7 tokens and a target of 34.*40"):
        scorer(*pad_left(random_sources(), 7), *pad_right([[5] * 33, [5] * 34, [5] * 34], 40))
    scorer(*pad_left(random_sources(), 7), *pad_right([[5] * 33] * 3, 40))
