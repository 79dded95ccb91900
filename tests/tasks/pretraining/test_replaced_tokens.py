"""A run with replaced_tokens: resumed, and what follows from its folder."""

import json
import shutil

import numpy as np
import pytest
import small_runs
import tensorflow as tf
from commands import settings_of

import nezha_tf
from nezha_tf import checkpoints
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens
from nezha_tf.objectives.uses import uses_of
from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import start
from nezha_tf.util.errors import UserError


def train(output_dir, *flags):
    small_runs.train(
        ".",
        output_dir,
        "replaced_tokens",
        *("--dynamic_masking=token", "--learning_rate=1e-2", "--optimizer=lamb", "--log_steps=1"),
        *("--num_warmup_steps=1", "--num_train_steps=4", "--save_checkpoints_steps=2", *flags),
    )


def tensors(path):
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data and `run`, a run of four steps with an evaluation."""
    folder = tmp_path_factory.mktemp("electra")
    small_runs.write_data(folder, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train("run", "--do_eval")
    return folder


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_a_resumed_run_is_the_uninterrupted_one(folder):
    """All weights, moments and seeds, with dropout and draws; an evaluation changes nothing."""
    shutil.copytree("run", "resumed")
    for path in [*(folder / "resumed").glob("model.ckpt-4*"), folder / "resumed" / "checkpoint"]:
        path.unlink()
    train("resumed")
    whole, resumed = (tensors(f"{name}/model.ckpt-4") for name in ("run", "resumed"))
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], name)
    before, sampler = tensors("run/model.ckpt-2"), "nezha_tf/random_state_"
    assert any((before[n] != whole[n]).any() for n in whole if n.startswith(sampler))


def test_the_loss_is_that_of_the_generator_and_50_times_the_other():
    results = json.loads(open("run/eval_results.json").read())
    expected = results["generator_loss"] + 50 * results["replaced_token_loss"]
    assert results["loss"] == pytest.approx(expected, rel=1e-6)
    best = json.loads(open("run/best_checkpoint.json").read())
    assert "generator_loss" in best and "loss" not in best
    for name in ("generator_majority", "replaced_token_majority", "replaced_token"):
        assert 0 < results[f"{name}_accuracy"] <= 1


def test_the_folder_is_that_of_the_discriminator():
    opened = open_folder("run")
    model = opened.make_model()
    assert type(model) is NezhaForReplacedTokens and uses_of(opened.task) == {}
    encoder = nezha_tf.NezhaEncoder(opened.config)
    opened.load_into(encoder)  # as the export of features does
    for own, other in zip(encoder.weights, model.encoder.weights, strict=True):
        np.testing.assert_array_equal(own, other)


def test_fine_tuning_begins_with_the_discriminator_and_leaves_the_rest():
    config = open_folder("run").config
    model = NezhaForSequenceClassification(config, 2)
    fresh = ("cls/", "output_")
    line = start.load_initial(model, "run", fresh, settings_of(PretrainingSettings))[0]
    left_out = line.partition("not in this model: ")[2]
    others = [
        f"discriminator_predictions/dense{n}/{k}" for n in ("", "_1") for k in ("bias", "kernel")
    ]
    assert "generator/ (23 weights)" in left_out and all(name in left_out for name in others)
    assert "bert/" not in left_out and line.count("random: output_") == 1
    written = tensors("run/model.ckpt-4")
    for name, variable in tf1_names(model).items():
        assert name.startswith("output_") or (written[name] == variable.numpy()).all(), name


def test_masked_lm_goes_on_from_it_and_it_goes_on_from_masked_lm(tmp_path):
    config = open_folder("run").config
    model = nezha_tf.NezhaForPreTraining(config)
    report = checkpoints.load(model, "run/model.ckpt-4")
    assert not report.missing and len(report.unused) == 27
    prefix = str(tmp_path / "model.ckpt")
    checkpoints.save_tf1_checkpoint(model, prefix)
    other = NezhaForReplacedTokens(config)
    report = checkpoints.load(other, prefix, Pretraining.fresh_names)
    assert len(report.missing) == 27 and not report.unused


def test_a_configuration_without_a_quarter_is_refused_in_one_line(folder):
    (folder / "odd.json").write_text(json.dumps({**small_runs.CONFIG, "num_attention_heads": 2}))
    with pytest.raises(UserError, match="num_attention_heads 2 is not a multiple of 4"):
        train("odd", "--bert_config_file=odd.json")
