"""The model that the flags name: one way to it, and what is read of it."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from generation_models import BARE

from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.generation.model import load_model, open_model
from nezha_tf.generation.settings import TrainedModelSettings
from nezha_tf.util.errors import UserError


def test_there_is_one_way_to_the_model(model, settings, tmp_path):
    given = {name: getattr(settings(TrainedModelSettings), name) for name in BARE}
    folder = str(model[0])
    for bare in (BARE, BARE[1:2], BARE[::2]):
        flags = {name: given[name] for name in bare}
        message = f"holds a whole model; leave out {', '.join(f'--{name}' for name in bare)}$"
        with pytest.raises(UserError, match=f"--model_folder={folder} {message}"):
            open_model(TrainedModelSettings(**flags, model_folder=folder))
    assert open_model(TrainedModelSettings(model_folder=folder)).task == {"task": None}
    (tmp_path / "alone").mkdir()
    for name in ("index", "data-00000-of-00001"):
        shutil.copy(f"{given['init_checkpoint']}.{name}", tmp_path / "alone" / f"model.{name}")
    alone = {"init_checkpoint": str(tmp_path / "alone" / "model")}
    for changes, message in (
        ({"init_checkpoint": None}, "--init_checkpoint is needed"),
        ({**alone, "vocab_file": None}, "no vocab.txt in .*, or pass --vocab_file"),
        ({**alone, "bert_config_file": None}, "no bert_config.json or .*--bert_config_file"),
    ):
        with pytest.raises(UserError, match=message):
            assert open_model(settings(TrainedModelSettings, **changes)).tokenizer
    beside = TrainedModelSettings(init_checkpoint=given["init_checkpoint"])
    assert open_model(beside).config == open_model(settings(TrainedModelSettings)).config


def test_weights_that_are_not_finite_are_named(model, settings, tmp_path):
    reader = tf.train.load_checkpoint(str(model[0] / "model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    tensors["bert/embeddings/token_type_embeddings"][4, 3] = np.nan
    write_tensors(tmp_path / "bad.ckpt", tensors)
    opened = open_model(settings(TrainedModelSettings, init_checkpoint=str(tmp_path / "bad.ckpt")))
    message = "bad.ckpt: bert/embeddings/token_type_embeddings holds NaN or infinity; take an ea"
    with pytest.raises(UserError, match=message):
        load_model(opened)
