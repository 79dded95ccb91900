"""Layer decay, freezing, averages, smoothing and others, against brute force."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from commands import PRETRAINING, assert_each_one_line, assert_one_line, run_pretraining
from helpers import load_golden_model, random_batch

from nezha_tf import AdamWeightDecay, Lamb, NezhaForPreTraining
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_name, tf1_names
from nezha_tf.modeling.flops import training_flops
from nezha_tf.modeling.replaced_tokens import NezhaForReplacedTokens
from nezha_tf.objectives.bert import Bidirectional
from nezha_tf.objectives.losses import cross_entropies, weighted
from nezha_tf.tasks.finetuning.settings import FineTuningSettings
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.training import recipe
from nezha_tf.training.log import DivergenceWatch, Monitor
from nezha_tf.training.loop import Plan
from nezha_tf.training.recipe import MovingAverage, Recipe
from nezha_tf.training.settings import RunSettings
from nezha_tf.training.step import TrainStep
from nezha_tf.util.errors import UserError

CONFIG = load_golden_model("nezha_tiny").config  # two layers
BATCH = random_batch(CONFIG)


def one_step(optimizer, freeze=0, count=1, ema_decay=None):
    """Returns (weights before and after each step by TF1 name, the step, the average)."""
    keras.utils.set_random_seed(3)
    model = NezhaForPreTraining(CONFIG)
    recipe.freeze_layers(model.encoder, freeze)
    optimizer.build(model.trainable_variables)
    average = ema_decay and MovingAverage(model, optimizer.iterations, ema_decay)
    step = TrainStep(
        tf.distribute.get_strategy(),
        model,
        Bidirectional().loss(),
        Recipe(optimizer, moving_average=average),
        training=False,
    )
    values = [{name: variable.numpy() for name, variable in tf1_names(model).items()}]
    for _ in range(count):
        report = step.on_batch(BATCH)
        values.append({name: variable.numpy() for name, variable in tf1_names(model).items()})
    return values, model, average, step, report


def depth(name):
    """0 for the embeddings, 1 and 2 for the layers, 3 for everything above."""
    if "/layer_" in name:
        return int(name.split("/layer_")[1].split("/")[0]) + 1
    return 0 if "embeddings" in name else 3


@pytest.mark.parametrize(
    ("name", "variant", "optimizer_class"),
    (
        ("lamb", "nezha", Lamb),
        ("lamb", "paper", Lamb),
        ("adamw", "bert", AdamWeightDecay),
        ("adamw", "paper", AdamWeightDecay),
    ),
)
def test_settings_choose_the_optimizer(name, variant, optimizer_class):
    chosen = {"optimizer": name, f"{name}_variant": variant}
    settings = RunSettings(**chosen, num_warmup_steps=1)
    optimizer = recipe.make(settings, NezhaForPreTraining(CONFIG), {}).optimizer
    assert type(optimizer) is optimizer_class and optimizer.variant == variant


@pytest.mark.parametrize(
    ("settings_class", "given", "expected"),
    (
        (RunSettings, {}, 10_000),
        (RunSettings, {"num_warmup_steps": 7}, 7),
        (RunSettings, {"num_warmup_steps": 7, "warmup_proportion": 0.3}, 30),
        (FineTuningSettings, {}, 10),
        (FineTuningSettings, {"num_warmup_steps": 7}, 7),
        (FineTuningSettings, {"num_warmup_steps": 0}, 0),
        (FineTuningSettings, {"warmup_proportion": 0.3}, 30),
        (FineTuningSettings, {"warmup_proportion": 0.0}, 0),
        (FineTuningSettings, {"num_warmup_steps": 7, "warmup_proportion": 0.3}, 30),
        (Seq2SeqSettings, {}, 10),
        (Seq2SeqSettings, {"num_warmup_steps": 7}, 7),
    ),
)
def test_the_warmup_that_is_given_is_made(settings_class, given, expected):
    assert recipe.warmup_steps(settings_class(num_train_steps=100, **given)) == expected


# `_get_layer_lrs` of ELECTRA for two layers and 0.5: embeddings, layers, what is above.
OF_ELECTRA = (0.0625, 0.125, 0.25, 1.0)


@pytest.mark.parametrize("optimizer_class", (Lamb, AdamWeightDecay))
def test_layer_decay_scales_each_layers_step(optimizer_class):
    (before, plain), *_ = one_step(optimizer_class(1e-2))
    (_, decayed), *_ = one_step(optimizer_class(1e-2, layer_decay=0.5))
    for name in before:
        expected = (plain[name] - before[name]) * OF_ELECTRA[depth(name)]
        np.testing.assert_allclose(decayed[name] - before[name], expected, atol=2e-7, err_msg=name)


def test_frozen_layers_stay_and_the_others_move():
    (before, after), model, *_ = one_step(Lamb(1e-2), freeze=1)
    for name in before:
        moved = (before[name] != after[name]).any()
        assert moved == (depth(name) > 1), name
    with pytest.raises(UserError, match="the model has 2 layers"):
        recipe.freeze_layers(model.encoder, 3)


def test_tables_of_positions_are_embeddings():
    model = NezhaForPreTraining(dataclasses.replace(CONFIG, position_encoding="learned_relative"))
    optimizer = AdamWeightDecay(layer_decay=0.5)
    optimizer.build(model.trainable_variables)
    factors = {
        tf1_name(variable.path): float(optimizer.rate_and_decay(variable, 1.0)[0])
        for variable in model.trainable_variables
    }
    tables = [f"bert/encoder/relative_position/{name}" for name in ("keys", "values")]
    assert [factors.pop(name) for name in tables] == [0.0625] * 2
    assert factors == {name: OF_ELECTRA[depth(name)] for name in factors}
    recipe.freeze_layers(model.encoder, 1)
    left = {tf1_name(variable.path) for variable in model.trainable_variables}
    assert left == {name for name in factors if depth(name) > 1}


def test_recomputation_is_of_all_layers_or_refused():
    config = dataclasses.replace(CONFIG, num_attention_heads=4, intermediate_size=8, hidden_size=8)
    model = NezhaForReplacedTokens(config)
    layers = [*model.encoder.transformer_layers, *model.generator.transformer_layers]
    for recompute in (False, True):
        recipe.make(RunSettings(recompute=recompute, num_warmup_steps=1), model, {})
        assert {layer.recompute for layer in layers} == {recompute}
    frozen = RunSettings(recompute=True, freeze_layers=2, num_warmup_steps=1)
    with pytest.raises(UserError, match="--recompute does nothing with --freeze_layers of all"):
        recipe.make(frozen, model, {})


def test_moving_average_against_brute_force():
    """With TF1's decay in early steps; then put in place and removed again."""
    values, model, average, *_ = one_step(AdamWeightDecay(1e-2), count=4, ema_decay=0.3)
    expected = dict(values[0])
    for step, weights in enumerate(values[1:]):
        decay = min(0.3, (1 + step) / (10 + step))
        for name in expected:
            expected[name] = decay * expected[name] + (1 - decay) * weights[name]
    for name, value in average.state().items():
        base = name.removesuffix(f"/{AVERAGE_SUFFIX}")
        np.testing.assert_allclose(value, expected[base], atol=1e-6, err_msg=name)
    with average.in_place():
        for name, variable in tf1_names(model).items():
            np.testing.assert_allclose(variable, expected[name], atol=1e-6, err_msg=name)
    for name, variable in tf1_names(model).items():
        np.testing.assert_array_equal(variable, values[-1][name], name)
    average.restart()
    for name, value in average.state().items():
        np.testing.assert_array_equal(value, values[-1][name.removesuffix(f"/{AVERAGE_SUFFIX}")])


def test_label_smoothing_against_the_smoothed_target():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(5, 7)).astype("float32"), rng.integers(0, 7, 5)
    weights = np.array([1, 1, 0, 1, 0.5], "float32")
    target = np.eye(7)[labels] * 0.9 + 0.1 / 7
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = (-(target * log_probs).sum(-1) * weights).sum()
    ratio = weighted(cross_entropies(logits, labels, label_smoothing=0.1), weights)
    assert float(ratio.sum) == pytest.approx(expected, rel=1e-6)
    assert float(ratio.weight) == 3.5


def test_trust_ratios_of_lamb_by_layer():
    """The paper's ratio is norm(weights) / norm(update) of each matrix."""
    (before, after), _, _, step, report = one_step(Lamb(1e-2, variant="paper"))
    names = [tf1_name(variable.path) for variable in step.variables]
    ratios = dict(zip(names, report.trust_ratios.numpy(), strict=True))
    # A step is rate * ratio * direction, whose norm is rate * norm(weights).
    for name, ratio in ratios.items():
        moved = np.linalg.norm(after[name] - before[name])
        if ratio != 1:
            assert moved == pytest.approx(1e-2 * np.linalg.norm(before[name]), rel=1e-3), name
    reader = type("Reader", (), {"corrupt_records": 3})
    values = Monitor(step, Lamb(), None, reader).values(report)
    of_layer = [ratio for name, ratio in ratios.items() if "/layer_1/" in name]
    assert values["trust_ratio/layer_1"] == pytest.approx(np.mean(of_layer), rel=1e-5)
    groups = {name for name in values if name.startswith("trust_ratio/")}
    parts = ("embeddings", "layer_0", "layer_1", "pooler", "heads")
    assert groups == {f"trust_ratio/{part}" for part in parts}
    norm = np.sqrt(sum((after[name] ** 2).sum() for name in after))
    assert values["weight_norm"] == pytest.approx(norm, rel=1e-5)
    assert values["corrupt_records"] == 3 and values["skipped_steps"] == 0


def test_a_plan_stops_at_each_event():
    plan = Plan(25, 10, 4, steps_per_loop=7, profile_steps=(5, 9))
    step, stops = 0, []
    while not plan.is_last(step):
        step += plan.count_from(step)
        stops.append(step)
    assert stops == [4, 5, 8, 9, 10, 12, 16, 20, 24, 25]
    assert [s for s in stops if plan.saves(s)] == [10, 20, 25]
    assert [plan.next_save(s) for s in (0, 9, 10, 19, 20, 24)] == [10, 10, 20, 20, 25, 25]
    assert [s for s in stops if plan.logs(s)] == [4, 8, 10, 12, 16, 20, 24, 25]


def entry(loss):
    return {"loss": loss, "learning_rate": 1e-3, "gradient_norm": 2.0, "weight_norm": 3.0}


def test_a_diverging_loss_stops_the_run_and_shows_the_last_steps():
    watch = DivergenceWatch(2.0, 3, [entry(9.0), {"step": 4, "eval_loss": 0.1}])
    for step, loss in enumerate((5.0, 4.0, 8.5, 7.9, 8.5, 9.0)):
        watch.check(step, entry(loss))
    with pytest.raises(UserError, match=r"9\.5 at step 6, after 4;") as error:
        watch.check(6, entry(9.5))
    assert "step 3" in str(error.value) and "gradient_norm 2" in str(error.value)
    calm = DivergenceWatch(0, 1)
    calm.check(1, entry(1.0)), calm.check(2, entry(1e9))


def test_a_loss_near_0_does_not_diverge():
    watch = DivergenceWatch(2.0, 1, [entry(1e-9)])
    watch.check(1, entry(2e-3))
    with pytest.raises(UserError, match="diverged"):
        watch.check(2, entry(2.1e-3))


@pytest.mark.parametrize(
    "encoding, sides",
    (("functional_relative", 2), ("learned_relative", 2), ("absolute", 1), ("rotary", 1)),
)
def test_flops_against_a_count_by_hand(encoding, sides):
    config = dataclasses.replace(
        CONFIG,
        hidden_size=4,
        num_attention_heads=2,
        intermediate_size=8,
        vocab_size=10,
        position_encoding=encoding,
    )
    # Two layers, T = 3, P = 2: query, key, value, output; the two of the feed-forward; scores
    # and context, each plain and, where tables of distances are read, relative.
    layer = 4 * 3 * 4 * 4 + 2 * 3 * 4 * 8 + sides * 2 * (3 * 3 * 4)
    head = 2 * 4 * 4 + 2 * 4 * 10
    assert training_flops(config, 3, 2) == 6 * (2 * layer + head + 4 * 4)
    # Five remembered tokens: a key and a value of each, and products with them.
    remembered = 2 * 5 * 4 * 4 + sides * 2 * (3 * 5 * 4)
    more = training_flops(config, 3, 2, memory_length=5) - training_flops(config, 3, 2)
    assert more == 6 * 2 * remembered
    assert training_flops(config, 3, 2, True) == 2 * 2 * layer + 6 * (head + 4 * 4)
    # Adapters of rank 2, each with a product from the input and one to the output. The kernels, of
    # no gradient of their own, have one product less.
    kernels, small = 4 * 3 * 4 * 4 + 2 * 3 * 4 * 8, 4 * 3 * 2 * (4 + 4) + 2 * 3 * 2 * (4 + 8)
    adapted = training_flops(config, 3, 2) - 2 * 2 * kernels + 6 * 2 * small
    assert training_flops(config, 3, 2, lora_rank=2) == adapted
    # The last layer for one place: keys and values of all three, the rest of one.
    last = 2 * 3 * 4 * 4 + 2 * 4 * 4 + 2 * 4 * 8 + sides * 2 * (3 * 4)
    assert training_flops(config, 3, 2, num_outputs=1) == 6 * (layer + last + head + 4 * 4)
    # Two more layers, of two of the three tokens.
    middle = 4 * 2 * 4 * 4 + 2 * 2 * 4 * 8 + sides * 2 * (2 * 2 * 4)
    deeper = dataclasses.replace(config, num_hidden_layers=4)
    counted = 6 * (2 * layer + 2 * middle + head + 4 * 4)
    assert training_flops(deeper, 3, 2, num_middle=2) == pytest.approx(counted, rel=1e-12)


def test_a_run_with_the_whole_recipe(folder):
    """Everything at once; the average is evaluated. With XLA: see `test_resume_laws`."""
    changes = ("--do_eval", "--eval_file=eval.tfrecord", "--num_train_steps=6")
    changes += ("--precision=mixed_float16", "--initial_loss_scale=1024", "--layer_decay=0.9")
    changes += ("--ema_decay=0.9", "--label_smoothing=0.1", "--warmup_proportion=0.5")
    changes += ("--gradient_accumulation_steps=2", "--peak_tflops=0.01", "--profile_steps=1,2")
    changes += ("--optimizer=lamb", "--save_checkpoints_steps=3", "--keep_checkpoint_max=1")
    result = run_pretraining(folder, *changes)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    out = folder / "run"
    entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [entry for entry in entries if "loss" in entry]
    assert [entry["learning_rate"] > 0 for entry in trained] == [False] + [True] * 5
    for name in ("weight_norm", "loss_scale", "model_flop_utilisation", "trust_ratio/layer_0"):
        assert all(entry[name] > 0 for entry in trained), name
    assert list((out / "profile").rglob("*.xplane.pb"))
    at_end = json.loads((out / "eval_results.json").read_text())
    again = run_pretraining(folder, *changes, "--nodo_train", "--plot")
    assert again.returncode == 0, again.stderr
    assert json.loads((out / "eval_results.json").read_text()) == pytest.approx(at_end, rel=1e-3)
    best = json.loads((out / "best_checkpoint.json").read_text())
    assert best["loss"] == min(entry["eval_loss"] for entry in entries if "eval_loss" in entry)


def test_a_run_ends_early_where_nothing_gets_better_and_does_not_go_on(folder):
    changes = ("--do_eval", "--eval_file=eval.tfrecord", "--save_checkpoints_steps=2")
    changes += ("--early_stopping_patience=2", "--learning_rate=1", "--num_train_steps=40")
    changes += ("--optimizer=adamw", "--divergence_factor=0", "--max_eval_steps=4")
    result = run_pretraining(folder, *changes)
    assert result.returncode == 0, result.stderr
    best = json.loads((folder / "run" / "best_checkpoint.json").read_text())["global_step"]
    last = json.loads((folder / "run" / "eval_results.json").read_text())["global_step"]
    assert last == best + 4 < 40
    assert f"stopped early at step {last}: no result since step {best} was better" in result.stdout
    again = run_pretraining(folder, *changes)
    assert f"is at step {last} already" in again.stdout


def test_gradients_that_are_never_finite_end_the_run(folder):
    changes = ("--optimizer=adamw", "--learning_rate=1e38", "--max_skipped_steps=4")
    result = run_pretraining(folder, *changes, "--num_train_steps=50", "--save_checkpoints_steps=1")
    assert_one_line(result, "4 steps in a row were skipped", "the gradient of", "model.ckpt-")


def test_mistakes_in_the_recipe(folder):
    mistakes = (
        (["--gradient_accumulation_steps=3"], ["must divide the 4 examples"]),
        (["--profile_steps=5,5"], ["--profile_steps=5,5"]),
        (["--profile_steps=5,10"], ["--profile_steps=5,10 end after the last step"]),
        (["--freeze_layers=2"], ["the model has 1 layers"]),
        (["--warmup_proportion=1"], ["--num_warmup_steps=9"]),
        (["--distribution_strategy=multi_worker"], ["TF_CONFIG"]),
        (["--num_gpus=64"], ["--num_gpus=64: this machine has"]),
        (["--distribution_strategy=tpu", "--tpu=nowhere"], ["--tpu=nowhere"]),
    )
    standard = (*PRETRAINING, "--num_train_steps=9")
    assert_each_one_line("run_pretraining.py", standard, mistakes, folder)
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("size", "count", "is_enough"), ((8, 2, True), (6, 3, False), (4, 1, True))
)
def test_examples_that_are_compared_are_counted_on_each_replica(size, count, is_enough):
    settings = RunSettings(train_batch_size=size, gradient_accumulation_steps=count)
    sums = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], sums)
    model = NezhaForPreTraining(CONFIG)
    parts = recipe.make(RunSettings(num_warmup_steps=1), model, {})
    given = (strategy, model, Bidirectional().loss(), parts)
    if is_enough:
        assert recipe.make_step(settings, *given, least_compared=2).step == 0
        return
    with pytest.raises(UserError, match=f"leaves 1 example .* pass at least {4 * count}"):
        recipe.make_step(settings, *given, least_compared=2)
    assert recipe.make_step(settings, *given).step == 0
