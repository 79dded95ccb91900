"""Where a fine-tuning is compiled if the user does not say."""

import pytest
import toy_task
from toy_finetuning import settings_in
from toy_task import ToyTask


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    return folder


@pytest.mark.parametrize(
    ("changes", "is_compiled"),
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
def test_short_runs_in_float32_on_a_processor_are_not_compiled(
    data, tmp_path, changes, is_compiled
):
    settings = settings_in(data, tmp_path, **{"jit_compile": None, **changes})
    assert ToyTask(settings).settings.jit_compile is is_compiled
