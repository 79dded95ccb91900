"""Helpers of several test files: golden models, batches, and folders of runs."""

import json

import numpy as np
import tensorflow as tf
from conftest import GOLDEN

from nezha_tf import NezhaConfig, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints.name_table import tf1_names

GOLDEN_MODELS = ("nezha_tiny", "bert_tiny")


def load_golden_model(name, model_class=NezhaForPreTraining):
    config = NezhaConfig.from_json_file(GOLDEN / name / "bert_config.json")
    model = model_class(config)
    report = checkpoints.load_tf1_checkpoint(model, str(GOLDEN / name / "model.ckpt"))
    assert not report.missing
    return model


def assert_is_a_model(folder, kind, step, vocab_file, **settings):
    """Asserts that a run's folder opens as a model of a class, with the weights of a step."""
    opened = model_folder.open_folder(folder)
    written = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    assert {name: written[name] for name in settings} == settings
    assert opened.task == written and type(opened.make_model()) is kind
    assert (folder / "vocab.txt").read_bytes() == vocab_file.read_bytes()
    assert len(opened.tokenizer.vocabulary) == len(vocab_file.read_bytes().splitlines())
    reader = tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
    for name, variable in tf1_names(opened.make_model()).items():
        np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name), name)


def golden_batch(figures):
    """Returns the `in.*` arrays of a forward.npz as a batch with the reader's dtypes."""
    return {
        key.removeprefix("in."): tf.constant(
            value, tf.float32 if value.dtype == np.float32 else tf.int32
        )
        for key, value in figures.items()
        if key.startswith("in.")
    }


def total_loss(losses):
    """Returns the sum of the mean losses of a batch."""
    return sum(loss.over(loss.weight) for loss in losses.values())


def random_batch(config, batch_size=12, length=24, predictions=4, seed=0):
    """Returns examples with falling lengths and falling numbers of predictions."""
    rng = np.random.default_rng(seed)
    lengths = np.linspace(length, predictions + 1, batch_size).astype(int)
    counts = np.linspace(predictions, 1, batch_size).astype(int)
    ids = rng.integers(0, config.vocab_size, (batch_size, length))
    return {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.constant(np.arange(length) < lengths[:, None], tf.int32),
        "segment_ids": tf.constant(rng.integers(0, 2, (batch_size, length)), tf.int32),
        "masked_lm_positions": tf.constant(
            np.stack([rng.permutation(n)[:predictions] for n in lengths]), tf.int32
        ),
        "masked_lm_ids": tf.constant(
            rng.integers(0, config.vocab_size, (batch_size, predictions)), tf.int32
        ),
        "masked_lm_weights": tf.constant(np.arange(predictions) < counts[:, None], tf.float32),
        "next_sentence_labels": tf.constant(rng.integers(0, 2, (batch_size, 1)), tf.int32),
    }


def tensors(prefix):
    """Returns the tensors of a checkpoint, dict of name to array."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def write_rows(path, *rows):
    """Writes lines of JSON; returns the path as a str."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")
    return str(path)


def rows_of(path):
    """Returns the values of lines of JSON, a list."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_model_files(folder, tokens, config):
    """Writes vocab.txt and config.json; returns the flags that name them, a dict."""
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config))
    names = {"vocab_file": "vocab.txt", "bert_config_file": "config.json"}
    return {flag: str(folder / name) for flag, name in names.items()}
