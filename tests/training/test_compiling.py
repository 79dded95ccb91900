"""What is compiled by XLA if the user does not say."""

from types import SimpleNamespace

import pytest
import small_runs
import tensorflow as tf
import toy_task
from commands import settings_of
from toy_finetuning import settings_in
from toy_task import ToyTask

from nezha_tf.tasks.pretraining.settings import PretrainingSettings
from nezha_tf.tasks.pretraining.task import Pretraining
from nezha_tf.training import devices, run
from nezha_tf.training.compiling import LEAST_COMPILED_FLOPS, pays_to_compile

# By hand, for a sequence of small_runs.CONFIG: 12 places have keys and values, and 3, which the
# masked LM reads or might (two predictions and [CLS]), all the rest of the layer: two products of
# 16 x 16, the feed-forward layer, and scores, values and both with distances. Then the masked LM at
# 2 places. A product of n weights takes 2n operations, and training thrice as many.
LAYER = 12 * 2 * 16 * 16 + 3 * (2 * 16 * 16 + 2 * 16 * 32 + 4 * 12 * 16)
HEAD = 2 * (16 * 16 + 16 * len(small_runs.TOKENS))
OF_EXAMPLE = 3 * 2 * (LAYER + HEAD)
ENOUGH = LEAST_COMPILED_FLOPS / OF_EXAMPLE / 16  # steps of 16 examples


def is_compiled(settings, make_task):
    task = run.make(settings, devices.make_strategy("one_device"), [settings.output_dir], make_task)
    return task.settings.jit_compile


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_train_steps": 999}, False),
        ({"num_train_steps": 1000}, True),
        ({"num_train_epochs": 1.0}, False),
        ({"train_minutes": 0.1}, True),
        ({"num_train_steps": 9, "precision": "mixed_bfloat16"}, True),
        ({"num_train_steps": 9, "distribution_strategy": "tpu"}, True),
        ({"num_train_steps": 9, "jit_compile": True}, True),
        ({"num_train_steps": 1000, "jit_compile": False}, False),
        ({"do_train": False}, True),
    ],
    ids=str,
)
def test_fine_tuning_of_few_steps_in_float32_on_a_processor_is_not(
    toy, tmp_path, changes, expected
):
    settings = settings_in(toy, tmp_path, **{"jit_compile": None, **changes})
    assert is_compiled(settings, ToyTask) is expected


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    small_runs.write_data(folder)
    return folder


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((f"--num_train_steps={0.9 * ENOUGH:.0f}",), False),
        ((f"--num_train_steps={1.1 * ENOUGH:.0f}",), True),
        ((f"--num_train_steps={0.3 * ENOUGH:.0f}", "--train_batch_size=64"), True),
        (
            (
                f"--num_train_steps={0.3 * ENOUGH:.0f}",
                *("--train_batch_size=64", "--initial_batch_size=16"),
                f"--batch_growth_steps={0.299 * ENOUGH:.0f}",
            ),
            False,
        ),
        (("--train_minutes=0.1",), True),
        (("--num_train_steps=9", "--precision=mixed_bfloat16"), True),
        (("--num_train_steps=9", "--jit_compile"), True),
        ((f"--num_train_steps={1.1 * ENOUGH:.0f}", "--nojit_compile"), False),
        (("--nodo_train", "--do_eval"), True),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else str(value),
)
def test_pretraining_of_little_arithmetic_in_float32_on_a_processor_is_not(texts, flags, expected):
    settings = settings_of(
        PretrainingSettings,
        *("--do_train", "--objectives=bidirectional", f"--output_dir={texts}/out"),
        *(f"--bert_config_file={texts}/config.json", f"--vocab_file={texts}/vocab.txt"),
        *(f"--input_file={texts}/train.tfrecord", f"--eval_file={texts}/eval.tfrecord"),
        *("--pair=none", "--max_seq_length=12", "--max_predictions_per_seq=2"),
        *("--train_batch_size=16", "--dynamic_masking=whole_word"),
        *flags,
    )
    assert is_compiled(settings, Pretraining) is expected


@pytest.mark.parametrize("gpus", ([], ["GPU:0"]))
def test_a_short_run_on_a_gpu_is(monkeypatch, gpus):
    settings = SimpleNamespace(do_train=True, precision="float32", distribution_strategy="default")
    monkeypatch.setattr(tf.config, "list_logical_devices", {"GPU": gpus}.get)
    assert pays_to_compile(SimpleNamespace(settings=settings, is_short=True)) is bool(gpus)
