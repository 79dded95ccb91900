"""Packed texts: in a row with others, a text is what it is alone in its row."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from objective_gradients import gradients, inputs_of_all_places
from objective_models import config_of_segments
from text_rows import CLS, FIRST_OF_TEXT, LENGTH, MASK, SEP, VOCABULARY

from nezha_tf import Lamb
from nezha_tf.config import POSITION_ENCODINGS
from nezha_tf.data import schema
from nezha_tf.modeling.replaced_tokens import Sampler
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.objectives.objective import ExampleSettings
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.training.recipe import Recipe
from nezha_tf.training.step import TrainStep

ABLE = [name for name, objective in OBJECTIVES.items() if objective.has_packed_texts]
# The tokens of the texts of each row; the second row is full, and the last has a single text.
SIZES = ((5, 1, 4), (7, 3, 6, 0), (9,))
PREDICTIONS = 6


def test_which_objectives_read_packed_texts():
    assert ABLE == ["bidirectional", "left_to_right", "right_to_left", "causal", "replaced_tokens"]


def texts_of(sizes):
    """Returns a text for each size: (tokens with [MASK]s and special ones, {place: token})."""
    rng, texts = np.random.default_rng(2), []
    for size in sizes:
        tokens = [CLS, *rng.integers(FIRST_OF_TEXT, len(VOCABULARY), size).tolist(), SEP]
        places = rng.permutation(np.arange(1, size + 1))[: 1 + size // 4].tolist() if size else []
        labels = {place: tokens[place] for place in sorted(places)}
        texts.append(([MASK if n in labels else token for n, token in enumerate(tokens)], labels))
    return texts


def row_of(texts):
    """Returns the features of a row of texts, lists."""
    ids, text_ids, places, labels = [], [], [], []
    for number, (tokens, predicted) in enumerate(texts, 1):
        places += [len(ids) + place for place in predicted]
        labels += predicted.values()
        ids += tokens
        text_ids += [number] * len(tokens)
    padding, unused = [0] * (LENGTH - len(ids)), [0] * (PREDICTIONS - len(places))
    weights = [1.0] * len(places) + [0.0] * len(unused)
    row = {
        "input_ids": ids + padding,
        "input_mask": [1] * len(ids) + padding,
        "segment_ids": [0] * LENGTH,
        "text_ids": text_ids + padding,
        "word_starts": [int(token not in (CLS, SEP)) for token in ids] + padding,
        "next_sentence_labels": [0],
    }
    for name in ("masked_lm", "generator"):
        row |= {f"{name}_positions": places + unused, f"{name}_ids": labels + unused}
        row[f"{name}_weights"] = weights
    return row


def batch_of(rows):
    """Returns a batch of rows, lists of texts, of which each objective finds its features."""
    rows = [row_of(texts) for texts in rows]
    return {
        name: tf.constant(
            [row[name] for row in rows], tf.float32 if name.endswith("weights") else tf.int32
        )
        for name in rows[0]
    }


def batches(name):
    """Returns the batch of the rows, and that of the texts alone, as an objective reads them."""
    texts = texts_of([size for sizes in SIZES for size in sizes])
    places = np.cumsum([0, *map(len, SIZES)])
    rows = [texts[start:end] for start, end in itertools.pairwise(places)]
    packed, alone = batch_of(rows), batch_of([[text] for text in texts])
    del alone["text_ids"]
    if name != "replaced_tokens":  # which draws masks by the numbers of rows
        lengths = schema.Lengths(LENGTH, PREDICTIONS)
        for transform in OBJECTIVES[name].transforms(ExampleSettings(lengths, VOCABULARY)):
            packed, alone = (transform(each, None, 0) for each in (packed, alone))
    return packed, alone


@functools.cache
def model_of(name, encoding):
    keras.utils.set_random_seed(1)
    config = config_of_segments(
        len(VOCABULARY),
        position_encoding=encoding,
        max_relative_position=4,
        max_position_embeddings=LENGTH,
    )
    return OBJECTIVES[name].model(config)


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
@pytest.mark.parametrize("name", ABLE)
def test_a_packed_text_is_what_it_is_alone(monkeypatch, name, encoding):
    """States, losses, metrics and the gradients of all weights, up to the rounding of sums."""
    # The noise of draws is that of a row, so the likeliest token is taken.
    monkeypatch.setattr(Sampler, "call", lambda self, logits, ids, training: _likeliest(logits))
    packed, alone = batches(name)
    model, loss = model_of(name, encoding), OBJECTIVES[name].loss(of_pairs=False)
    outputs = [
        model(inputs_of_all_places(loss, batch), all_outputs=True) for batch in (packed, alone)
    ]
    states, expected = (found["sequence_output"].numpy() for found in outputs)
    text_ids, text = packed["text_ids"].numpy(), iter(expected)
    for row, numbers in zip(states, text_ids, strict=True):
        for number in range(1, numbers.max() + 1):
            own = row[numbers == number]
            np.testing.assert_allclose(own, next(text)[: len(own)], atol=2e-5)
    for figures in ("losses", "metrics"):
        found, wanted = (
            getattr(loss, figures)(of_batch, batch)
            for of_batch, batch in zip(outputs, (packed, alone), strict=True)
        )
        assert found.keys() == wanted.keys()
        for key, mean in wanted.items():
            assert float(mean.weight) > 0 or "recall" in key or "precision" in key
            np.testing.assert_allclose(found[key].sum, mean.sum, rtol=2e-5, err_msg=key)
            np.testing.assert_allclose(found[key].weight, mean.weight, rtol=1e-6, err_msg=key)
    both = [gradients(model, loss, each, training=False)[0] for each in (packed, alone)]
    for found, wanted in zip(*both, strict=True):
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, atol=1e-4 * scale)


def _likeliest(logits):
    return tf.argmax(logits, axis=-1, output_type=tf.int32)


@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_without_the_numbers_of_the_texts_the_states_are_others(encoding):
    """So the test above sees contamination."""
    packed, _ = batches("bidirectional")
    model, loss = model_of("bidirectional", encoding), OBJECTIVES["bidirectional"].loss(False)
    contaminated = {name: values for name, values in packed.items() if name != "text_ids"}
    one, other = (
        model(inputs_of_all_places(loss, batch), all_outputs=True)["sequence_output"].numpy()
        for batch in (packed, contaminated)
    )
    assert np.abs(one - other)[packed["text_ids"].numpy() > 0].max() > 1e-2


def test_the_encoder_keeps_texts_apart_without_a_mask():
    packed, _ = batches("bidirectional")
    for encoding in POSITION_ENCODINGS:
        encoder = model_of("bidirectional", encoding).encoder
        names = ("input_ids", "input_mask", "segment_ids", "text_ids")
        found = encoder({name: packed[name] for name in names})["sequence_output"]
        inputs = inputs_of_all_places(OBJECTIVES["bidirectional"].loss(False), packed)
        np.testing.assert_array_equal(found, encoder(inputs)["sequence_output"])


def test_transforms_of_a_mixture_keep_the_numbers_of_the_texts():
    """Those of `replaced_tokens`, too, which draws its masks anew."""
    texts = texts_of([4, 5, 3, 6])
    batch = batch_of([texts[:2], texts[2:]] * 8)
    mixture = ObjectiveMixture(dict.fromkeys((name for name in ABLE if name != "causal"), 1.0))
    examples = ExampleSettings(schema.Lengths(LENGTH, PREDICTIONS), VOCABULARY)
    features = [feature.name for feature in (*mixture.features(examples), schema.TEXT_IDS)]
    made = {name: batch[name] for name in features}
    for transform in mixture.transforms(examples):
        made = transform(made, tf.range(16, dtype=tf.int64), 5)
    assert len(set(made["objective_ids"].numpy()[:, 0].tolist())) == 4
    np.testing.assert_array_equal(made["text_ids"], batch["text_ids"])
    np.testing.assert_array_equal(made["input_mask"], batch["input_mask"])


def test_replicas_and_micro_batches_train_as_one_device_does():
    """A step of four rows: on one device, and of one row at a time on two."""
    packed, _ = batches("bidirectional")
    rows = {name: tf.concat([values, values[:1]], axis=0) for name, values in packed.items()}
    found = []
    for count, parts in ((1, 1), (2, 2)):
        devices = [f"CPU:{number}" for number in range(count)]
        # The other reduction leaves a state in the process that strategies of later tests run into.
        sums = tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(devices, sums)
        with strategy.scope():
            model_of.cache_clear()
            model = model_of("bidirectional", "absolute")
            model.encoder.pooler.trainable = model.next_sentence.trainable = False
            loss = OBJECTIVES["bidirectional"].loss(of_pairs=False)
            recipe = Recipe(Lamb(1e-3), clip_norm=1.0, accumulation_steps=parts)
            step = TrainStep(strategy, model, loss, recipe, jit_compile=False, training=False)
        data = tf.data.Dataset.from_tensor_slices(rows).repeat().batch(4 // count)
        feed = iter(strategy.distribute_datasets_from_function(lambda _, data=data: data))
        report = step.run(feed, 1)
        ratios = {name: float(each.over(each.weight)) for name, each in report.ratios.items()}
        found.append({**ratios, "gradient_norm": float(report.gradient_norm)})
    model_of.cache_clear()
    assert found[0]["gradient_norm"] > 0.1
    assert found[1] == pytest.approx(found[0], rel=1e-4)
