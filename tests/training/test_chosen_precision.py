"""`--precision=auto`, and the rate of products that a run compares itself with."""

import json
import re

import pytest
import tensorflow as tf
from commands import PRETRAINING, run_anew, run_pretraining
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.training import flag_history
from nezha_tf.training.precision import LEAST_GAIN, fastest, with_precision
from nezha_tf.training.settings import RunSettings
from nezha_tf.training.throughput import product_rate

RATE = st.floats(1e9, 1e15)


@given(RATE, RATE, RATE)
def test_a_precision_is_chosen_only_if_its_products_gain_enough(full, brain, half):
    rates = {"float32": full, "mixed_bfloat16": brain, "mixed_float16": half}
    chosen = fastest("GPU", rates)
    if max(brain, half) < LEAST_GAIN * full:
        assert chosen == "float32"
    else:
        assert rates[chosen] >= LEAST_GAIN * full
        assert rates[chosen] >= 0.8 * max(brain, half) or brain < LEAST_GAIN * full
    on_cpu = {"float32": full, "mixed_bfloat16": brain}
    gains = brain >= LEAST_GAIN * full
    assert fastest("CPU", on_cpu) == ("mixed_bfloat16" if gains else "float32")


def test_devices_that_are_known():
    a100 = {"float32": 1.3e14, "mixed_bfloat16": 2.5e14, "mixed_float16": 2.6e14}
    t4 = {"float32": 4e12, "mixed_bfloat16": 3e12, "mixed_float16": 2.5e13}
    assert fastest("GPU", a100) == "mixed_bfloat16"
    assert fastest("GPU", t4) == "mixed_float16"
    assert fastest("TPU", {}) == "mixed_bfloat16"


def test_a_rate_is_one_that_processors_have():
    for dtype in (tf.float32, tf.bfloat16):
        assert 1e8 < product_rate("CPU", dtype) < 1e14


@pytest.mark.processes
def test_a_run_says_what_it_takes_and_how_near_it_comes_to_the_machine(folder):
    changes = ("--num_train_steps=2", "--precision=auto")
    result = run_anew("run_pretraining.py", *PRETRAINING, *changes, folder=folder)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    begun = r"loading TensorFlow\nprecision (\w+) \(TFLOP/s of products: (.*)\)\n"
    said = re.match(begun, result.stdout)
    rates = {name: float(rate) for name, rate in map(str.split, said[2].split(", "))}
    assert list(rates) == ["float32", "mixed_bfloat16"]
    assert said[1] == fastest("CPU", rates)
    assert f"{said[1]}, on the CPU" in result.stdout and "TFLOP/s " in result.stdout
    assert f"--precision={said[1]}\n" in (folder / "run" / "run.flags").read_text()
    entries = map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
    assert all(0 < entry["model_flop_utilisation"] < 1 for entry in entries)


@pytest.mark.processes
def test_a_run_that_goes_on_keeps_its_precision(folder):
    """Forked programs measure equal rates, for which float32 would be taken."""
    for steps, flag in (2, "mixed_bfloat16"), (4, "auto"):
        changes = (f"--num_train_steps={steps}", f"--precision={flag}")
        result = run_pretraining(folder, *changes, "--nojit_compile")
        assert result.returncode == 0, result.stderr
        assert "mixed_bfloat16, on the CPU" in result.stdout
    begun = "loading TensorFlow\nprecision mixed_bfloat16 (as before)\n"
    assert result.stdout.startswith(begun)
    changed = {change.name for change in flag_history.changes_in(str(folder / "run"))}
    assert changed == {"--num_train_steps"}


def test_the_runs_of_a_sweep_have_one_precision(tmp_path):
    """mixed_float16 is never measured on a CPU, so it comes from the run that has a checkpoint."""
    folders = [tmp_path / name for name in ("without", "begun", "later")]
    for folder, precision in zip(folders, ("float32", "mixed_float16", "float32"), strict=True):
        folder.mkdir()
        (folder / flag_history.FLAGS_FILE).write_text(f"--precision={precision}\n")
        (folder / "bert_config.json").write_text("{}")
    for folder in folders[1:]:
        (folder / "model.ckpt-3.index").touch()
        (folder / "model.ckpt-3.data-00000-of-00001").touch()
    auto = RunSettings(precision="auto", do_train=True)
    chosen = with_precision(auto, tf.distribute.get_strategy(), list(map(str, folders)))
    assert chosen.precision == "mixed_float16"
