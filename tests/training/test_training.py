"""Steps, checkpoints and whole runs."""

import dataclasses
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN, REPOSITORY
from helpers import golden_batch, load_golden_model, total_loss

from nezha_tf import AdamWeightDecay, Lamb, NezhaConfig, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints.name_table import tf1_name, tf1_names
from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.data.record_stream import untuned
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.losses import WeightedMean, cross_entropies, hits, weighted
from nezha_tf.optimization.clipping import clip_by_global_norm, global_norm
from nezha_tf.training import recipe
from nezha_tf.training.log import Averages
from nezha_tf.training.recipe import DynamicLossScale, MovingAverage, Recipe
from nezha_tf.training.saving import training_state
from nezha_tf.training.step import COUNTERS, TrainStep
from nezha_tf.util.errors import UserError


def test_golden_checkpoint_comes_back_bit_by_bit(tmp_path):
    for name in ("nezha_tiny", "bert_tiny"):
        prefix = str(tmp_path / name / "model.ckpt")
        checkpoints.save_tf1_checkpoint(load_golden_model(name), prefix)
        original = tf.train.load_checkpoint(str(GOLDEN / name / "model.ckpt"))
        copy = tf.train.load_checkpoint(prefix)
        names = {n for n in original.get_variable_to_shape_map() if "/lamb_" not in n}
        assert set(copy.get_variable_to_shape_map()) == names - {"global_step"}
        for variable in copy.get_variable_to_shape_map():
            np.testing.assert_array_equal(
                copy.get_tensor(variable), original.get_tensor(variable), variable
            )


@pytest.mark.parametrize("is_absolute", (True, False))
def test_tensorflow_finds_the_newest_checkpoint(tmp_path, monkeypatch, is_absolute):
    monkeypatch.chdir(tmp_path)
    folder = str(tmp_path / "out" / "run") if is_absolute else "out/run"
    checkpoints_of_run = RunCheckpoints(folder, {"x": tf.Variable(1.0)}, keep_max=2)
    for step in (1, 2, 3):
        checkpoints_of_run.save(step)
    assert tf.train.latest_checkpoint(folder) == os.path.join(folder, "model.ckpt-3")
    assert tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths == [
        os.path.join(folder, f"model.ckpt-{step}") for step in (2, 3)
    ]


def test_slots_and_step_of_a_checkpoint_are_passed_over():
    model = load_golden_model("nezha_tiny")
    report = checkpoints.load_tf1_checkpoint(model, GOLDEN / "nezha_tiny" / "model.ckpt")
    assert report == ([], [], "")


def test_weights_that_have_no_place_are_reported(golden):
    """BERT's weights in NEZHA's encoder: its position table and the heads are unused."""
    from nezha_tf import NezhaEncoder

    encoder = NezhaEncoder(load_golden_model("nezha_tiny").config)
    report = checkpoints.load_tf1_checkpoint(encoder, GOLDEN / "bert_tiny" / "model.ckpt")
    heads = {name for name in golden("bert_tiny/gradients") if name.startswith("cls/")}
    assert set(report.unused) == {"bert/embeddings/position_embeddings", *heads}


def test_names_do_not_depend_on_what_a_model_is_built_in():
    paths = (
        "encoder/layer_11/attention/output/kernel",
        "a/b/encoder/layer_11/attention/output/kernel",
    )
    assert {tf1_name(path) for path in paths} == {
        "bert/encoder/layer_11/attention/output/dense/kernel"
    }


def test_a_checkpoint_of_another_shape_names_variable_and_shapes():
    config = dataclasses.replace(load_golden_model("nezha_tiny").config, vocab_size=212)
    model = NezhaForPreTraining(config)
    before = model.get_weights()
    with pytest.raises(UserError) as error:
        checkpoints.load_tf1_checkpoint(model, str(GOLDEN / "nezha_tiny" / "model.ckpt"))
    assert "word_embeddings has shape [211, 32], and the model's is [212, 32]" in str(error.value)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_checkpoint_of_another_kind_names_what_it_lacks(tmp_path):
    prefix = str(GOLDEN / "nezha_tiny" / "model.ckpt")
    with pytest.raises(
        UserError, match=r"has no table of positions \(bert/embeddings/position_embeddings\)"
    ):
        checkpoints.load_tf1_checkpoint(
            NezhaForPreTraining(load_golden_model("bert_tiny").config), prefix
        )
    with pytest.raises(UserError, match="no checkpoint at"):
        checkpoints.load_tf1_checkpoint(load_golden_model("bert_tiny"), str(tmp_path / "x"))


def test_a_damaged_checkpoint_is_one_error(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    model = load_golden_model("nezha_tiny")
    checkpoints.save_tf1_checkpoint(model, prefix)
    data = f"{prefix}.data-00000-of-00001"
    with open(data, "r+b") as file:
        file.truncate(os.path.getsize(data) // 2)
    with pytest.raises(UserError, match=r"checkpoint .* is damaged at"):
        checkpoints.load_tf1_checkpoint(model, prefix)


@pytest.fixture
def batch(golden):
    return golden_batch(golden("nezha_tiny/forward"))


def new_run(optimizer_class=Lamb, loss_scale=None, seed=1, precision="float32", layers=1):
    keras.utils.set_random_seed(seed)
    config = NezhaConfig.from_json_file(GOLDEN / "nezha_tiny" / "bert_config.json")
    config = dataclasses.replace(config, num_hidden_layers=layers)
    model = NezhaForPreTraining(config, dtype=precision)
    optimizer = optimizer_class(1e-2)
    step = TrainStep(
        tf.distribute.get_strategy(),
        model,
        Bidirectional().loss(),
        Recipe(optimizer, loss_scale=loss_scale),
    )
    return model, step, training_state(model, optimizer, counters=step.state())


@pytest.mark.parametrize("optimizer_class", (Lamb, AdamWeightDecay))
def test_a_restored_run_goes_on_exactly(batch, tmp_path, optimizer_class):
    """Six steps with dropout equal three steps, a restart with new objects, and three more."""
    model, step, state = new_run(optimizer_class)
    kept = RunCheckpoints(str(tmp_path), state)
    for number in range(6):
        step.on_batch(batch)
        if number == 2:
            kept.save(3)
    resumed, resumed_step, resumed_state = new_run(optimizer_class, seed=2)
    assert RunCheckpoints(str(tmp_path), resumed_state).restore_newest() == kept.path(3)
    for _ in range(3):
        resumed_step.on_batch(batch)
    for name, variable in state.items():
        np.testing.assert_array_equal(variable, resumed_state[name], name)
    for old, new in zip(model.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_our_checkpoints_have_the_originals_names(batch, tmp_path):
    _, step, state = new_run(layers=2)
    step.on_batch(batch)
    RunCheckpoints(str(tmp_path), state).save(1)
    original = tf.train.load_checkpoint(str(GOLDEN / "nezha_tiny" / "model.ckpt"))
    ours = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    expected = original.get_variable_to_shape_map()
    found = ours.get_variable_to_shape_map()
    assert {n: s for n, s in found.items() if not n.startswith("nezha_tf/")} == expected
    assert ours.get_tensor("global_step") == 1
    assert ours.get_tensor("global_step").dtype == np.int64


def test_other_flags_that_need_a_state_are_named(tmp_path):
    config = dataclasses.replace(load_golden_model("nezha_tiny").config, num_hidden_layers=1)
    models = [NezhaForPreTraining(config) for _ in range(2)]
    recipe.freeze_layers(models[1].encoder, 1)

    def state(optimizer_class=AdamWeightDecay, loss_scale=None, ema_decay=None, frozen=1):
        optimizer = optimizer_class(1e-2)
        optimizer.build(models[frozen].trainable_variables)
        parts = [loss_scale and DynamicLossScale(loss_scale, 9)]
        parts.append(ema_decay and MovingAverage(models[frozen], optimizer.iterations, ema_decay))
        others = {str(part): part.state() for part in filter(None, parts)}
        return training_state(models[frozen], optimizer, **others)

    RunCheckpoints(str(tmp_path), state()).save(2)
    for changes, named in (
        ({"optimizer_class": Lamb}, "--optimizer and --freeze_layers"),
        ({"frozen": 0}, "--optimizer and --freeze_layers"),
        ({"ema_decay": 0.5}, "--ema_decay"),
        ({"loss_scale": 8.0, "ema_decay": 0.5}, "--ema_decay, --precision"),
    ):
        with pytest.raises(UserError) as error:
            RunCheckpoints(str(tmp_path), state(**changes)).restore_newest()
        assert f"a state of training that depends on {named}; pass the flags" in str(error.value)
        assert f"begin a new run in another --output_dir with --init_checkpoint={tmp_path}/" in (
            str(error.value)
        )


def test_old_checkpoints_go_and_no_temporary_stays(tmp_path):
    model = load_golden_model("nezha_tiny")
    kept = RunCheckpoints(str(tmp_path), {"a": model.trainable_variables[0].value}, keep_max=2)
    for step in (5, 10, 100):
        kept.save(step)
    assert kept.steps() == [10, 100]
    names = {f"model.ckpt-{n}.{e}" for n in (10, 100) for e in ("index", "data-00000-of-00001")}
    assert {entry.name for entry in tmp_path.iterdir()} == names | {"checkpoint"}


def test_losses_are_pairs_that_add_up_over_batches(golden):
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(6, 4, 9)).astype("float32"), rng.integers(0, 9, (6, 4))
    weights = (rng.random((6, 4)) < 0.6).astype("float32")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    averages = Averages()
    for part in (slice(0, 1), slice(1, 6)):
        losses, right = (of(logits[part], labels[part]) for of in (cross_entropies, hits))
        loss, accuracy = weighted(losses, weights[part], 1e-5), weighted(right, weights[part])
        averages.add({"loss": loss, "accuracy": accuracy})
    means = averages.means()
    expected = (nll * weights).sum() / (weights.sum() + 1e-5)
    assert means["loss"] == pytest.approx(expected, rel=1e-5)
    right = ((logits.argmax(-1) == labels) * weights).sum() / weights.sum()
    assert means["accuracy"] == pytest.approx(right)
    assert total_loss({"a": WeightedMean(6.0, 2.0, 1.0), "b": WeightedMean(1.0, 4.0)}) == 2.25


def test_clipping_against_numpy():
    rng = np.random.default_rng(0)
    gradients = [tf.constant(rng.normal(size=shape), tf.float32) for shape in ((3, 4), (5,))]
    norm = np.sqrt(sum((g.numpy() ** 2).sum() for g in gradients))
    for bound in (norm / 3, norm * 3):
        for scale in (1.0, 8.0):
            scaled = [gradient * scale for gradient in gradients]
            clipped, norms = clip_by_global_norm(scaled, bound, scale)
            assert float(global_norm(norms)) == pytest.approx(norm, rel=1e-6)
            for old, new in zip(gradients, clipped, strict=True):
                np.testing.assert_allclose(new, old * min(1, bound / norm), rtol=1e-6)


def test_a_step_with_bad_gradients_changes_nothing_but_scale_and_counters(batch):
    scale = DynamicLossScale(initial_scale=8.0, growth_steps=2)
    _, step, state = new_run(loss_scale=scale)
    assert not step.on_batch(batch).skipped
    before = {name: value.numpy() for name, value in state.items()}
    weights = batch["masked_lm_weights"].numpy()
    weights[0, 0] = np.inf
    assert step.on_batch({**batch, "masked_lm_weights": tf.constant(weights)}).skipped == 1
    changed = {name for name, value in state.items() if (value.numpy() != before[name]).any()}
    random_states = {name for name in state if "random_state" in name}
    counters = {f"nezha_tf/{name}" for name in COUNTERS}
    loss_scale = {"nezha_tf/loss_scale", "nezha_tf/loss_scale_steps"}
    assert changed - random_states == loss_scale | counters
    assert scale.scale.numpy() == 4.0
    step.on_batch(batch), step.on_batch(batch)
    assert scale.scale.numpy() == 8.0


def test_a_loss_scale_backs_off_to_one():
    scale = DynamicLossScale(initial_scale=9.0, growth_steps=1, backoff_factor=0.25)
    for expected in (2.25, 1.0, 1.0):
        scale.update(tf.constant(False))
        assert scale.scale.numpy() == expected
    scale.update(tf.constant(True))
    assert scale.scale.numpy() == 2.0
    with pytest.raises(UserError, match="--loss_scale_backoff_factor=1 "):
        DynamicLossScale(8.0, 10, backoff_factor=1.0)


@pytest.mark.parametrize("precision", ("mixed_float16", "mixed_bfloat16"))
def test_mixed_precision_learns_the_batch(batch, precision):
    scale = DynamicLossScale(2.0**32, 1000) if precision == "mixed_float16" else None
    model, step, _ = new_run(AdamWeightDecay, scale, precision=precision)
    batches = iter(untuned(tf.data.Dataset.from_tensors(batch).repeat()))
    # The initial scale is much too high for float16, so the first steps only lower it.
    step.run(batches, 60)
    report = step.run(batches, 10)
    last = report.ratios["masked_lm_loss"]
    assert report.skipped < 3 and step.step > 40
    assert last.over(last.weight) < np.log(model.config.vocab_size) - 0.5  # what guessing has
    assert {variable.dtype for variable in tf1_names(model).values()} == {"float32"}


def test_configs_are_valid():
    for path in (REPOSITORY / "configs").glob("*.json"):
        config = NezhaConfig.from_json_file(path)
        assert config == NezhaConfig.from_dict(json.loads(json.dumps(config.to_dict())))
