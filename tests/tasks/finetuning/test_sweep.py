"""Sweeps, model cards and averaged weights, on a toy task that runs like the real ones."""

import dataclasses
import hashlib
import json
import math
import sys

import numpy as np
import pytest
import tensorflow as tf
import toy_task
from commands import settings_of
from helpers import tensors
from huggingface_hub import ModelCard
from toy_finetuning import ToySettings, settings_in
from toy_task import ToyTask

import nezha_tf
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_names
from nezha_tf.checkpoints.run_checkpoints import BestMetric
from nezha_tf.checkpoints.run_folder import read_metrics
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.tasks.finetuning.sweep import Outcome
from nezha_tf.training import model_card, output_folder
from nezha_tf.training import run as training_run
from nezha_tf.util.errors import UserError

RATES, SEEDS = (1e-3, 3e-2), (7, 8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


class CountingTask(ToyTask):
    """A task that records which parts it reads."""

    parts = ()

    def read(self, part):
        CountingTask.parts += (part,)
        return super().read(part)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def assert_close(one, other, atol):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], atol=atol, err_msg=name)


@pytest.fixture(scope="module")
def swept(data, tmp_path_factory):
    """The settings and the folder of a sweep of two rates and two seeds."""
    out = tmp_path_factory.mktemp("sweep")
    rates = {"learning_rate": tuple(map(str, RATES)), "seed": SEEDS[0], "num_seeds": 2}
    settings = settings_in(data, out, num_train_epochs=2.0, **rates)
    sweep.run(settings, CountingTask)
    return settings, out


def test_a_sweep_reads_once_and_names_the_best(swept):
    _, out = swept
    assert CountingTask.parts[:3] == ("train", "eval", "predict")
    folders = {(r, s): out / f"lr_{r}" / f"seed_{s}" for r in RATES for s in SEEDS}
    found = {key: load(folder / "eval_results.json") for key, folder in folders.items()}
    written = load(out / "sweep.json")
    text = (out / "sweep.txt").read_text(encoding="utf-8")
    for entry, rate in zip(written["rates"], RATES, strict=True):
        for name in ("accuracy", "loss"):
            values = [found[rate, seed][name] for seed in SEEDS]
            mean, deviation = np.mean(values), np.std(values, ddof=1)
            assert entry["mean"][f"eval {name}"] == pytest.approx(mean)
            assert entry["standard_deviation"][f"eval {name}"] == pytest.approx(deviation)
            assert f"{mean:.4f} ± {deviation:.4f}" in text
    means = {rate: np.mean([found[rate, seed]["accuracy"] for seed in SEEDS]) for rate in RATES}
    rate = max(means, key=means.get)
    best = folders[rate, max(SEEDS, key=lambda seed: found[rate, seed]["accuracy"])]
    assert written["best"]["folder"] == str(best) and f"best run: {best} " in text
    assert load(out / "predictions.json") == pytest.approx(
        np.array(load(best / "predictions.json")), abs=1e-6
    )
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card == (best / "README.md").read_text(encoding="utf-8") and str(best) in card
    assert open_folder(out).path == str(best)


def test_runs_that_have_ended_are_not_made_again(swept, capsys):
    settings, out = swept
    before = load(out / "sweep.json")
    (out / "lr_0.03" / "seed_8" / sweep.RESULTS_FILE).unlink()
    saved = [path.stat().st_mtime_ns for path in sorted(out.rglob("model.ckpt-*"))]
    CountingTask.parts = ()
    sweep.run(dataclasses.replace(settings, do_predict=True), CountingTask)
    assert CountingTask.parts == ("train", "eval", "predict")
    output = capsys.readouterr().out
    assert output.count("done before") == 3 and output.count("nothing to train") == 1
    assert [path.stat().st_mtime_ns for path in sorted(out.rglob("model.ckpt-*"))] == saved
    assert load(out / "sweep.json")["rates"] == before["rates"]


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """The folder of a run with the settings of the sweep's last run."""
    out = tmp_path_factory.mktemp("alone")
    rate = {"learning_rate": (str(RATES[1]),)}
    settings = settings_in(data, out, num_train_epochs=2.0, seed=SEEDS[1], **rate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tests/toy_finetuning.py"])  # for the model card
        sweep.run(settings, ToyTask)
    return out


def test_one_rate_and_seed_are_a_run_as_any_other(swept, alone):
    in_sweep = swept[1] / f"lr_{RATES[1]}" / f"seed_{SEEDS[1]}"
    assert_close(*(tensors(folder / "model.ckpt-6") for folder in (alone, in_sweep)), atol=1e-5)
    assert not (alone / "sweep.json").exists()


def test_a_folder_has_one_run_or_several(swept, alone, data):
    """What opens a folder with both would find old results."""
    settings, out = swept
    one = dataclasses.replace(settings, learning_rate=("0.5",), num_seeds=1)
    with pytest.raises(UserError, match=r"sweep\.json.* several runs; .* another --output_dir"):
        sweep.run(one, ToyTask)
    assert not list(out.glob("model.ckpt-*"))
    several = settings_in(data, alone, seed=SEEDS[1], num_seeds=2)
    with pytest.raises(UserError, match=r"model\.ckpt-6.* one run; .* another --output_dir"):
        sweep.run(several, ToyTask)
    assert not list(alone.glob("lr_*"))


def test_a_folder_of_several_runs_predicts_later(swept):
    """With one rate and one seed, as for the folder of one run."""
    settings, out = swept
    before = load(out / "predictions.json")
    (out / "predictions.json").unlink()
    changes = {"learning_rate": ("0.5",), "num_seeds": 1, "do_train": False, "do_eval": False}
    sweep.run(dataclasses.replace(settings, **changes), ToyTask)
    np.testing.assert_allclose(load(out / "predictions.json"), before, atol=1e-5)


def traced(compiled):
    """Returns the compiled functions of a run, and how often each was traced."""
    step, evaluation = compiled.train_step, compiled.evaluation
    functions = (step._many, step._gradients, evaluation.predict_step)
    return functions, [function.experimental_get_tracing_count() for function in functions]


class OtherReplicas(tf.distribute.MirroredStrategy):
    """Uses keys that no other test uses: a process sums all values of a key like the first one."""

    _collective_key_base = 1000


def test_a_second_seed_compiles_nothing_and_is_a_run_as_any_other(data, tmp_path):
    """On replicas, each of which has its own dropout, which also starts again."""
    settings = settings_in(data, tmp_path, num_train_steps=2, learning_rate=1e-2, do_predict=False)
    runs = sweep.Sweep(OtherReplicas(["CPU:0", "CPU:1"]), ToyTask(settings))
    found, weights = [], []
    for number, seed in enumerate((8, 7, 8)):
        runs.outcome(1e-2, seed, [(1e-2, seed)])
        found.append(traced(runs._before[1e-2]))
        folder = tmp_path / "lr_0.01" / f"seed_{seed}"
        weights.append(tensors(folder / "model.ckpt-2"))
        folder.rename(tmp_path / str(number))
    (functions, counts), *later = found
    for same_functions, same_counts in later:
        assert all(one is other for one, other in zip(functions, same_functions, strict=True))
        assert counts == same_counts and min(counts) > 0
    assert counts[0] == 1  # before the first step, and not again in it
    assert_close(weights[0], weights[2], atol=1e-6)
    assert any((value != weights[1][name]).any() for name, value in weights[0].items())


def test_a_model_card_says_what_is_in_the_folder(alone, data):
    card = (alone / "README.md").read_text(encoding="utf-8")
    results = load(alone / "eval_results.json")
    checkpoint = alone / f"model.ckpt-{results['global_step']}"
    assert f"`{checkpoint}`, the best by accuracy" in card and "random weights" in card
    for part, count in (("train", 48), ("eval", 21), ("predict", 17)):
        path = data / f"{part}.txt"
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert f"| {part}_file | {path} | {len(content)} | {digest} |" in card
        assert f"| {part} | {count} |" in card and f"- {part}: {count}" in card
    assert "\n--learning_rate=0.03\n" in card and "\n--seed=8\n" in card
    assert "--weight_decay_rate" not in card  # a default
    for name, value in results.items():
        assert f"| eval {name} | {value:.6g} |" in card

    head = ModelCard(card).data
    assert (head.language, head.library_name) == ("zh", "nezha_tf")
    assert head.pipeline_tag == "text-classification" and head.license is head.base_model is None
    found = {(r.dataset_split, r.dataset_name, r.metric_name): r for r in head.eval_results}
    assert {r.task_type for r in head.eval_results} == {"text-classification"}
    accuracy = found["validation", "eval.txt", "accuracy"]
    assert accuracy.metric_value == pytest.approx(results["accuracy"], rel=1e-5)
    assert head.metrics == sorted({result.metric_type for result in head.eval_results})

    _, lines, _, command, _ = card.split("## Use")[1].split("```")
    names = {}
    exec(lines.removeprefix("python"), names)
    assert type(names["model"]) is NezhaForSequenceClassification
    assert names["tokenizer"].tokenize(chr(0x4E00)) == [chr(0x4E00)]
    command = command.replace("\\\n", " ")
    program, *arguments = command.replace("FILE", str(data / "predict.txt")).split()[1:]
    assert program == "toy_finetuning.py"
    old = load(alone / "predictions.json")
    (alone / "predictions.json").unlink()
    sweep.run(settings_of(ToySettings, *arguments), ToyTask)
    np.testing.assert_allclose(load(alone / "predictions.json"), old, atol=1e-5)
    assert (alone / "README.md").read_text(encoding="utf-8") == card


def test_a_folder_of_another_task_or_vocabulary_is_refused(data, tmp_path):
    task = ToyTask(settings_in(data, tmp_path, do_eval=False, do_predict=False))
    for _ in range(2):
        output_folder.write_settings(tmp_path, task)
    (tmp_path / "vocab.txt").write_text("other")
    with pytest.raises(UserError, match=r"another vocabulary than that of the run in .*vocab\.txt"):
        output_folder.write_settings(tmp_path, task)
    settings = load(tmp_path / "task.json") | {"task": "pretraining", "objectives": "a"}
    (tmp_path / "task.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"another task \(pretraining, not classification\)"):
        output_folder.write_settings(tmp_path, task)


def test_mistakes_in_the_rates():
    assert sweep.learning_rates(["1e-5", "2e-5", "0.00001"]) == [1e-5, 2e-5]
    for texts in (["1e-5", "fast"], ["-1"], ["nan"], ["inf"], [""], []):
        with pytest.raises(UserError, match="--learning_rate"):
            sweep.learning_rates(texts)
    with pytest.raises(UserError, match="--do_eval"):
        sweep.run(ToySettings(learning_rate=("1", "2")), None)


def outcomes(scores):
    return [
        Outcome(rate, seed, f"{rate}/{seed}", {"eval f1": value, "eval global_step": 3})
        for rate, values in scores.items()
        for seed, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("higher_is_better", "scores", "best"),
    (
        (True, {1.0: [0.5, 0.9], 2.0: [0.8, 0.7]}, (2.0, 0)),
        (False, {1.0: [0.5, 0.9], 2.0: [0.8, 0.7]}, (1.0, 0)),
        (True, {1.0: [0.5, math.nan], 2.0: [0.1, 0.2]}, (2.0, 1)),
        (True, {1.0: [0.5, 0.5], 2.0: [0.5, 0.5]}, (1.0, 0)),
    ),
)
def test_the_best_is_of_the_best_mean(higher_is_better, scores, best):
    found = sweep.best_of(outcomes(scores), BestMetric("f1", higher_is_better))
    assert (found.learning_rate, found.seed) == best


def test_the_table_of_single_runs_has_no_deviation():
    found = outcomes({1e-5: [0.25], 2e-5: [0.5]})
    metric = BestMetric("f1", True)
    text = sweep.table(found, found[1], metric, "out")
    assert "±" not in text.split("\n", 1)[1] and "global_step" not in text
    assert text.splitlines()[1].split() == ["learning", "rate", "1e-05", "2e-05"]
    assert text.splitlines()[2].split() == ["eval", "f1", "0.2500", "0.5000"]


def test_flags_of_a_card_are_those_that_differ():
    settings = ToySettings(learning_rate=5e-5, do_train=True, warmup_proportion=None)
    assert model_card.changed_flags(settings) == ["--do_train=true"]
    settings = dataclasses.replace(settings, learning_rate=2e-5, seed=0)
    expected = ["--do_train=true", "--learning_rate=2e-05", "--seed=0"]
    assert model_card.changed_flags(settings) == expected


class Newest(ToyTask):
    reports_best = False  # as of pretraining


def test_averages_are_what_is_evaluated_and_predicts(data, tmp_path):
    """With all other options of fine-tuning; the best checkpoint is not the last one."""
    changes = {"ema_decay": 0.5, "keep_checkpoint_max": 9, "learning_rate": 0.03}
    changes |= {"r_drop_alpha": 1.0, "adversarial_epsilon": 0.1, "label_smoothing": 0.1}
    settings = settings_in(data, tmp_path / "out", num_train_epochs=2.0, **changes)
    training_run.run(settings, ToyTask)
    out = tmp_path / "out"
    evaluated = {e["step"]: e for e in read_metrics(str(out)) if "eval_loss" in e}
    assert set(evaluated) == {3, 6}
    trained = [e for e in read_metrics(str(out)) if "toy_loss" in e][-1]
    assert trained["r_drop_toy_loss"] > 0  # dropout is on
    assert trained["loss"] == pytest.approx(trained["toy_loss"] + trained["r_drop_toy_loss"])
    (out / "best_checkpoint.json").write_text('{"global_step": 3, "accuracy": 2.0}')
    # Where nothing is left to train, they are evaluated again: the newest ones, or the best.
    for step, kind in ((6, Newest), (3, ToyTask)):
        (out / "eval_results.json").unlink()
        training_run.run(settings, kind)
        results = load(out / "eval_results.json")
        assert results["global_step"] == step
        for name in ("loss", "accuracy"):
            assert results[name] == pytest.approx(evaluated[step][f"eval_{name}"], rel=1e-5)

    task = ToyTask(settings)
    model, saved = task.make_model("float32"), tensors(out / "model.ckpt-3")
    for name, variable in tf1_names(model).items():
        assert (saved[name] != saved[f"{name}/{AVERAGE_SUFFIX}"]).any(), name
        variable.assign(saved[f"{name}/{AVERAGE_SUFFIX}"])
    predicted = load(out / "predictions.json")
    arrays = task.examples["predict"].arrays
    _, loaded = nezha_tf.load(out)
    for row, ids in zip(predicted, arrays["input_ids"], strict=True):
        inputs = {"input_ids": ids[None], "segment_ids": 0 * ids[None]}
        inputs["input_mask"] = np.ones_like(ids)[None]
        for each in (model, loaded):
            np.testing.assert_allclose(each(inputs)[0], row, atol=1e-5)
