"""ELECTRA's model: what is drawn, the labels, shared embeddings and what gradients reach."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from masked_rows import chi_square

from nezha_tf import Lamb, NezhaConfig
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens, Sampler, generator_config
from nezha_tf.objectives.table import OBJECTIVES
from nezha_tf.training.recipe import Recipe
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import UserError

CONFIG = NezhaConfig(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=32,
    type_vocab_size=2,
    initializer_range=0.5,
)
LENGTH, MASK = 12, 4
OBJECTIVE = OBJECTIVES["replaced_tokens"]
LOSS = OBJECTIVE.loss(of_pairs=False)


def batch_of(rows=6, seed=0):
    """Returns examples with 3 predictions, of which the last row lacks one."""
    rng = np.random.default_rng(seed)
    originals = rng.integers(5, 40, (rows, LENGTH))
    places = np.sort([rng.permutation(np.arange(1, 7))[:3] for _ in range(rows)])
    weights = np.ones((rows, 3), "float32")
    weights[-1, 2], places[-1, 2] = 0.0, 0
    ids = originals.copy()
    for row in range(rows):
        ids[row, places[row][weights[row] > 0]] = MASK
    mask = np.arange(LENGTH) < np.linspace(LENGTH, 8, rows).astype(int)[:, None]
    batch = {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": np.zeros_like(ids),
        "generator_positions": places,
        "generator_ids": np.where(weights > 0, np.take_along_axis(originals, places, 1), 0),
    }
    batch = {name: tf.constant(values.astype("int32")) for name, values in batch.items()}
    return {**batch, "generator_weights": tf.constant(weights)}, originals


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    return NezhaForReplacedTokens(CONFIG)


@pytest.mark.parametrize("training, jit_compile", ((False, False), (True, True)))
def test_tokens_are_drawn_with_the_probabilities_of_the_generator(training, jit_compile):
    """20,000 draws of each of two softmaxes over five classes."""
    logits = np.array([[2.0, 0.0, 1.0, -1.0, 0.5], [0.0, 0.0, -3.0, 0.0, 1.0]], "float32")
    ids = np.random.default_rng(1).integers(0, 50, (20_000, 6)).astype("int32")
    call = tf.function(Sampler(seed=1), jit_compile=jit_compile)
    drawn = call(tf.constant(np.tile(logits, (20_000, 1, 1))), ids, training=training).numpy()
    assert drawn.dtype == np.int32
    for place, row in enumerate(logits):
        # A correct program exceeds this for one of 100,000 seeds, with four degrees of freedom.
        assert chi_square(np.bincount(drawn[:, place], minlength=5), np.exp(row)) < 28.5
    # The two predictions of an example are independent of each other.
    both = np.bincount(drawn[:, 0] * 5 + drawn[:, 1], minlength=25)
    shares = np.outer(*(np.exp(row) / np.exp(row).sum() for row in logits)).ravel()
    assert chi_square(both, shares) < 65.0


def test_noise_follows_the_seed_in_training_and_the_example_outside():
    sampler, logits = Sampler(seed=3), tf.zeros((8, 5, 30))
    ids = tf.constant(np.random.default_rng(1).integers(0, 50, (8, 6)), tf.int32)
    state = sampler.seed_generator.state.numpy()
    first, second = (sampler(logits, ids, training=True).numpy() for _ in range(2))
    assert (first != second).mean() > 0.8
    sampler.seed_generator.state.assign(state)
    np.testing.assert_array_equal(sampler(logits, ids, training=True), first)
    state = sampler.seed_generator.state.numpy()
    alone = sampler(logits, ids)
    np.testing.assert_array_equal(alone, sampler(logits, ids))
    np.testing.assert_array_equal(alone[3:5], sampler(logits[3:5], ids[3:5]))
    np.testing.assert_array_equal(sampler.seed_generator.state.numpy(), state)
    assert len({tuple(row) for row in alone.numpy()}) == 8


def test_labels_are_where_the_encoder_reads_another_token(model, monkeypatch):
    """Brute force over all tokens; some draws are forced to be the original tokens."""
    batch, originals = batch_of()
    places, weights = batch["generator_positions"].numpy(), batch["generator_weights"].numpy()
    drawn = np.random.default_rng(5).integers(5, 40, places.shape)
    drawn[0] = originals[0, places[0]]
    drawn[1, 1] = originals[1, places[1, 1]]
    seen = {}
    encode = type(model.encoder).call

    def recorded(encoder, inputs, **options):
        seen.update(inputs)
        return encode(encoder, inputs, **options)

    monkeypatch.setattr(type(model.encoder), "call", recorded)
    monkeypatch.setattr(Sampler, "call", lambda *_, **__: tf.constant(drawn, tf.int32))
    outputs = model(LOSS.inputs(batch), all_outputs=True)
    for row in range(len(originals)):
        expected = originals[row].tolist()
        for place, token, weight in zip(places[row], drawn[row], weights[row], strict=True):
            if weight:
                expected[place] = token
        assert seen["input_ids"][row].numpy().tolist() == expected
        is_other = [int(a != b) for a, b in zip(expected, originals[row], strict=True)]
        assert outputs["is_replaced"][row].numpy().tolist() == is_other
    assert not outputs["is_replaced"][0].numpy().any()


def test_losses_and_rates_against_numpy(model):
    batch, _ = batch_of()
    outputs = model(LOSS.inputs(batch), all_outputs=True)
    # So that it takes half of the tokens for replaced ones.
    outputs["replaced_token_logits"] -= np.median(outputs["replaced_token_logits"])
    found = {**LOSS.losses(outputs, batch), **LOSS.metrics(outputs, batch)}
    means = {name: float(mean.over(mean.weight)) for name, mean in found.items()}
    is_token = batch["input_mask"].numpy() > 0
    label = outputs["is_replaced"].numpy()[is_token] > 0
    logits = outputs["replaced_token_logits"].numpy()[is_token].astype("float64")
    probability, guess = 1 / (1 + np.exp(-logits)), logits > 0
    expected = {
        "loss": -np.log(np.where(label, probability, 1 - probability)).mean(),
        "accuracy": (guess == label).mean(),
        "majority_accuracy": 1 - label.mean(),
        "precision": label[guess].mean(),
        "recall": guess[label].mean(),
    }
    for name, value in expected.items():
        assert means[f"replaced_token_{name}"] == pytest.approx(value, rel=1e-5), name
    assert found["replaced_token_loss"].scale == 50 and found["generator_loss"].scale == 1
    used = batch["generator_weights"].numpy() > 0
    scores = outputs["generator_logits"].numpy()[used].astype("float64")
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
    own = scores[np.arange(len(scores)), batch["generator_ids"].numpy()[used]]
    assert means["generator_loss"] == pytest.approx(-own.mean(), rel=1e-5)


def gradients(model, batch, *names):
    """Returns {TF1 name: gradient or None} of the sum of some losses."""
    variables = tf1_names(model)
    with tf.GradientTape() as tape:
        losses = LOSS.losses(model(LOSS.inputs(batch), all_outputs=True), batch)
        loss = sum(losses[name].over(losses[name].weight) for name in names)
    found = tape.gradient(loss, [variable.value for variable in variables.values()])
    return {
        name: None if value is None else tf.convert_to_tensor(value).numpy()
        for name, value in zip(variables, found, strict=True)
    }


def test_each_loss_reaches_its_own_part_and_both_reach_the_embeddings(model):
    batch, _ = batch_of()
    of_generator = gradients(model, batch, "generator_loss")
    of_encoder = gradients(model, batch, "replaced_token_loss")
    of_both = gradients(model, batch, "generator_loss", "replaced_token_loss")
    untrained = ("cls/", "bert/pooler/")
    for name, both in of_both.items():
        parts = [part for part in (of_generator[name], of_encoder[name]) if part is not None]
        if name.startswith("bert/embeddings/"):
            assert len(parts) == 2 and all(part.any() for part in parts), name
            np.testing.assert_allclose(both, sum(parts), rtol=1e-4, atol=1e-6)
        elif name.startswith(untrained):
            assert not parts, name
        else:
            # A bias of keys changes no softmax.
            owner = of_generator if name.startswith("generator/") else of_encoder
            assert len(parts) == 1 and owner[name] is not None, name
            assert owner[name].any() or name.endswith("key/bias"), name


def test_a_perturbation_moves_the_embeddings_of_generator_and_encoder(model):
    """One for all tokens alike is as good as another table of segments, which both add."""
    inputs = LOSS.inputs(batch_of()[0])
    moved = tf.constant(np.random.default_rng(4).normal(size=CONFIG.hidden_size), tf.float32)
    every = tf.zeros((*inputs["input_ids"].shape, 1)) + moved
    found = model({**inputs, "embedding_perturbation": every}, all_outputs=True)
    table = model.encoder.embeddings.token_type_embeddings
    before = table.numpy()
    table.assign(before + moved)
    expected = model(inputs, all_outputs=True)
    table.assign(before)
    for name in ("generator_logits", "replaced_token_logits"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4)
        assert np.abs(found[name] - model(inputs, all_outputs=True)[name]).max() > 0.1


def test_a_step_goes_along_the_generators_loss_and_50_times_the_other():
    keras.utils.set_random_seed(3)
    model, (batch, _) = NezhaForReplacedTokens(CONFIG), batch_of()
    for part in (model.masked_lm, model.next_sentence, model.encoder.pooler):
        part.trainable = False  # as in `Pretraining`
    of_generator, of_encoder = (
        gradients(model, batch, name) for name in ("generator_loss", "replaced_token_loss")
    )
    squares = 0.0
    for name, first in of_generator.items():
        parts = [part for part in (first, of_encoder[name]) if part is not None]
        both = (0.0 if first is None else first) + 50.0 * (
            0.0 if of_encoder[name] is None else of_encoder[name]
        )
        squares += np.square(both).sum() if parts else 0.0
    strategy = tf.distribute.get_strategy()
    step = TrainStep(strategy, model, LOSS, Recipe(Lamb(1e-3)), training=False)
    assert float(step.on_batch(batch).gradient_norm) == pytest.approx(squares**0.5, rel=1e-4)


@pytest.mark.parametrize(
    "encoding, embedding_size",
    [("absolute", 4), ("functional_relative", 8), ("learned_relative", None), ("rotary", 4)],
)
def test_embeddings_are_shared_with_every_position_encoding(encoding, embedding_size):
    config = dataclasses.replace(
        CONFIG, position_encoding=encoding, embedding_size=embedding_size, num_hidden_layers=1
    )
    model, (batch, _) = NezhaForReplacedTokens(config), batch_of(2)
    outputs = model(LOSS.inputs(batch), training=True, all_outputs=True)
    assert outputs["generator_logits"].shape == (2, 3, 40)
    names = tf1_names(model)
    assert len(names) == len(model.weights)
    tables = [name for name, v in names.items() if v.shape == (40, config.embedding_width)]
    assert tables == ["bert/embeddings/word_embeddings"]
    assert names["generator/layer_0/attention/query/kernel"].shape == (4, 4)
    assert ("generator/mapping/kernel" in names) == (embedding_size != 4)
    assert not any(name.startswith("generator/positions/position_emb") for name in names)


@pytest.mark.parametrize("precision", ("mixed_float16", "mixed_bfloat16"))
def test_tokens_are_drawn_in_float32_with_any_precision(model, precision, monkeypatch):
    narrow, (batch, _), seen = NezhaForReplacedTokens(CONFIG, dtype=precision), batch_of(), []
    narrow.set_weights(model.get_weights())
    draw = Sampler.call

    def recorded(sampler, logits, *arguments, **options):
        seen.append(logits)
        return draw(sampler, logits, *arguments, **options)

    monkeypatch.setattr(Sampler, "call", recorded)
    outputs = narrow(LOSS.inputs(batch), training=True, all_outputs=True)
    assert seen[0].dtype == outputs["generator_logits"].dtype == "float32"
    assert outputs["replaced_token_logits"].dtype == outputs["is_replaced"].dtype == "float32"
    found, expected = (
        each(LOSS.inputs(batch), all_outputs=True)["generator_logits"] for each in (narrow, model)
    )
    np.testing.assert_allclose(found, expected, atol=0.5)


def test_groups_of_layers_are_shared_within_the_generator():
    config = dataclasses.replace(CONFIG, embedding_size=8, num_hidden_groups=1)
    names = tf1_names(NezhaForReplacedTokens(config))
    assert {name.split("/")[1] for name in names if name.startswith("generator/")} == {
        "group_0",
        "mapping",
        "masked_lm",
    }


@pytest.mark.parametrize(
    "key, value",
    [("hidden_size", 18), ("num_attention_heads", 2), ("intermediate_size", 30)],
)
def test_sizes_without_a_quarter_are_refused(key, value):
    heads = 2 if key == "hidden_size" else 4  # 18 is no multiple of 4 heads
    config = dataclasses.replace(CONFIG, **{"num_attention_heads": heads, key: value})
    with pytest.raises(UserError, match=f"{key} {value} is not a multiple of 4"):
        generator_config(config)
    assert generator_config(CONFIG).embedding_size == 16
