"""A random model with its files, and the settings of the tools with it."""

import dataclasses
import json

import pytest
import tensorflow as tf
from generation_models import CONFIG, TOKENS

from nezha_tf import NezhaConfig, checkpoints
from nezha_tf.modeling.pretraining import NezhaForMaskedLM


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A folder with a random model, and the model."""
    folder = tmp_path_factory.mktemp("model")
    config = NezhaConfig(**CONFIG)
    tf.keras.utils.set_random_seed(1)
    model = NezhaForMaskedLM(config)
    model.masked_lm.output_bias.assign(tf.one_hot(TOKENS.index("[SEP]"), 12))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt"))
    config.to_json_file(str(folder / "bert_config.json"))
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return folder, model


@pytest.fixture
def settings(model, tmp_path):
    """Returns a function: a class, changes -> the settings of a tool with this model."""
    folder, _ = model
    standard = {
        "bert_config_file": str(folder / "bert_config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "init_checkpoint": str(folder / "model.ckpt"),
        "input_file": str(tmp_path / "in.jsonl"),
        "output_file": str(tmp_path / "out.jsonl"),
        "max_source_length": 8,
        "max_target_length": 6,
        "jit_compile": False,
    }

    def of(settings_class, **changes):
        names = {field.name for field in dataclasses.fields(settings_class)}
        own = {name: value for name, value in standard.items() if name in names}
        return settings_class(**{**own, **changes})

    return of


@pytest.fixture
def write_lines(tmp_path):
    """Returns a function that writes rows as the tools' input."""

    def write(rows):
        lines = [json.dumps(row) + "\n" for row in rows]
        (tmp_path / "in.jsonl").write_text("".join(lines), encoding="utf-8")

    return write


@pytest.fixture
def read_lines(tmp_path):
    """Returns a function that reads the tools' output."""
    path = tmp_path / "out.jsonl"
    return lambda: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
