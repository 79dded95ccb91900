"""What several test files need of the golden models."""

import numpy as np
import tensorflow as tf
from conftest import GOLDEN

from nezha_tf import NezhaConfig, NezhaForPreTraining, checkpoints

GOLDEN_MODELS = ("nezha_tiny", "bert_tiny")


def load_golden_model(name, model_class=NezhaForPreTraining):
    config = NezhaConfig.from_json_file(GOLDEN / name / "bert_config.json")
    model = model_class(config)
    report = checkpoints.load_tf1_checkpoint(model, str(GOLDEN / name / "model.ckpt"))
    assert not report.missing
    return model


def golden_batch(figures):
    """The `in.*` figures of a forward.npz as a batch of the reader's dtypes."""
    return {
        key.removeprefix("in."): tf.constant(
            value, tf.float32 if value.dtype == np.float32 else tf.int32
        )
        for key, value in figures.items()
        if key.startswith("in.")
    }
