"""Runs with --layer_mix: what is trained, and that the folder is used as it was trained."""

import dataclasses
import json
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
import toy_task
from commands import CONFIG, run
from conftest import RESOURCES
from helpers import tensors
from toy_finetuning import settings_in
from toy_task import ToyTask

import nezha_tf
from nezha_tf import NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.checkpoints import published
from nezha_tf.checkpoints.convert import convert_checkpoint
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_names
from nezha_tf.checkpoints.settings import ConversionSettings
from nezha_tf.serving.export import export_folder
from nezha_tf.tasks.sentence_vectors.extract import extract_features
from nezha_tf.tasks.sentence_vectors.extract_settings import ExtractSettings
from nezha_tf.training import run as training_run
from nezha_tf.util.errors import UserError

TRAINED = ("layer_mix/", "bert/pooler/", "output_")
ROWS = ["embeddings", "layer_1", "layer_2", "gamma"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The files of the toy task, a configuration of two layers, and an encoder to begin with."""
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    config = NezhaConfig.from_dict({**toy_task.CONFIG, "num_hidden_layers": 2})
    config.to_json_file(str(folder / "config.json"))
    keras.utils.set_random_seed(5)
    checkpoints.save_tf1_checkpoint(NezhaEncoder(config), str(folder / "start.ckpt"))
    return folder


@pytest.fixture(scope="module")
def mixed(data, tmp_path_factory):
    """The settings and the folder of a run of 8 steps with averages, and what it printed."""
    out = tmp_path_factory.mktemp("mixed")
    settings = settings_in(
        data,
        out,
        learning_rate=0.03,
        layer_mix=True,
        init_checkpoint=str(data / "start.ckpt"),
        num_train_steps=8,
        save_checkpoints_steps=4,
        keep_checkpoint_max=9,
        ema_decay=0.5,
    )
    training_run.run(settings, ToyTask)
    return settings, out


def predictions(folder):
    return np.array(json.loads((folder / "predictions.json").read_text()))


def test_the_encoder_stays_as_it_was_and_has_no_slots(data, mixed):
    start, end = tensors(data / "start.ckpt"), tensors(mixed[1] / "model.ckpt-8")
    for name, value in start.items():
        is_same = np.array_equal(end[name], value)
        assert is_same != name.startswith(TRAINED), name
    endings = ("/adam_m", "/adam_v", f"/{AVERAGE_SUFFIX}")
    slotted = {re.sub("/[^/]*$", "", name) for name in end if name.endswith(endings)}
    assert slotted == {name for name in end if name.startswith(TRAINED)} - {
        name for name in end if name.endswith(endings)
    }
    assert np.ptp(end["layer_mix/weights"]) > 1e-3 and abs(end["layer_mix/gamma"] - 1) > 1e-3


def test_the_mixture_is_shown(mixed):
    card = (mixed[1] / "README.md").read_text(encoding="utf-8")
    shown = {name: float(value) for name, value in re.findall(r"layer_mix (\w+) \| (\S+)", card)}
    best = json.loads((mixed[1] / "best_checkpoint.json").read_text())["global_step"]
    weights = tensors(mixed[1] / f"model.ckpt-{best}")
    logits, gamma = (
        weights[f"layer_mix/{name}/{AVERAGE_SUFFIX}"].astype(np.float64)
        for name in ("weights", "gamma")
    )
    assert list(shown) == ROWS
    expected = [*(np.exp(logits) / np.exp(logits).sum()), gamma]
    np.testing.assert_allclose(list(shown.values()), expected, rtol=1e-5)


def test_a_run_that_was_cut_off_goes_on_bit_by_bit(mixed, tmp_path):
    settings, out = mixed
    for path in out.glob("model.ckpt-4.*"):
        shutil.copy(path, tmp_path)
    training_run.run(dataclasses.replace(settings, output_dir=str(tmp_path)), ToyTask)
    once, twice = (tensors(folder / "model.ckpt-8") for folder in (out, tmp_path))
    assert once.keys() == twice.keys()
    for name, value in once.items():
        np.testing.assert_array_equal(twice[name], value, err_msg=name)


def test_the_folder_decides_later(mixed, tmp_path):
    """Predictions without the flag, in Python, of an export, and with NumPy on vectors."""
    settings, out = mixed
    before = predictions(out)
    later = {"layer_mix": False, "do_train": False, "do_eval": False}
    training_run.run(dataclasses.replace(settings, **later), ToyTask)
    np.testing.assert_array_equal(predictions(out), before)

    tokenizer, model = nezha_tf.load(out)
    texts = ["丄丅丆", "丂丄丄丂"]
    ids = [tokenizer.convert_tokens_to_ids(["[CLS]", *text, "[SEP]"]) for text in texts]
    logits = []
    for row in np.array(ids[:1]), np.array(ids[1:]):
        inputs = {"input_ids": row, "input_mask": row * 0 + 1, "segment_ids": row * 0}
        logits.append(model(inputs)[0])
    logits = np.array(logits)

    export_folder(str(out), str(tmp_path / "export"))
    exported = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    found = exported(text=tf.constant(texts))["probabilities"]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)

    mixture = vectors(out, tmp_path, texts, ("mix",))
    shares = list(model.encoder.mixture.values().values())
    layers = np.split(vectors(out, tmp_path, texts, ("0", "1", "2")), 3, axis=1)
    mean = shares[3] * np.einsum("j,jth->th", shares[:3], np.stack(layers))
    np.testing.assert_allclose(mixture, mean, atol=1e-5)
    weights = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    firsts = mixture[[0, len(ids[0])]]  # the vector of each text's [CLS]
    pooled = firsts @ weights["bert/pooler/dense/kernel"] + weights["bert/pooler/dense/bias"]
    by_hand = np.tanh(pooled) @ weights["output_weights"].T + weights["output_bias"]
    np.testing.assert_allclose(by_hand, logits, atol=1e-5)


def vectors(folder, place, texts, layers, **changes):
    """Returns the vectors of all tokens of the texts, by the program's own function."""
    (place / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    files = {"input_file": str(place / "texts.txt"), "output_file": str(place / "out.npy")}
    standard = {"model_folder": str(folder), "level": "token", "layers": layers}
    extract_features(ExtractSettings(**{**files, **standard, **changes}))
    return np.load(place / "out.npy")


def test_conversion_keeps_the_mixture_or_refuses_it(mixed, tmp_path):
    def convert(layout, **changes):
        target = tmp_path / layout
        values = {"source": str(mixed[1]), "to": str(target), "format": layout}
        convert_checkpoint(ConversionSettings(**values, **changes))
        return target

    ours, weights = convert("nezha_tf"), tf1_names(nezha_tf.load(mixed[1])[1])
    for name, value in tensors(next(ours.glob("*.index")).with_suffix("")).items():
        np.testing.assert_array_equal(weights[name].numpy(), value, err_msg=name)
    assert json.loads((ours / "task.json").read_text())["layer_mix"]
    for layout, reader in (("tf1", "TF1's programs"), ("hugging_face", "Hugging Face's models")):
        with pytest.raises(UserError, match=rf"--layer_mix\) has no counterpart in {reader}"):
            convert(layout)
    convert("hugging_face", drop=("layer_mix/", "output_weights", "output_bias"))
    # Without task.json the weights tell it.
    config = NezhaConfig.from_json_file(str(ours / "bert_config.json"))
    checkpoint = str(next(ours.glob("*.index")).with_suffix(""))
    assert published.settings_of(str(ours), config, checkpoint)["layer_mix"]


def test_mistakes(data, mixed, tmp_path):
    settings, out = mixed

    def refused(message, **changes):
        with pytest.raises(UserError, match=message):
            training_run.run(dataclasses.replace(settings, **changes), ToyTask)

    refused("--recompute does nothing with --layer_mix", recompute=True)
    refused("is with --layer_mix, and this one without", layer_mix=False)
    elsewhere = {"output_dir": str(tmp_path / "new"), "do_train": False, "do_predict": False}
    checkpoint = str(out / "model.ckpt-8")
    refused("pass --layer_mix, too", layer_mix=False, init_checkpoint=checkpoint, **elsewhere)
    bare = {
        "model_folder": None,
        "bert_config_file": str(data / "config.json"),
        "vocab_file": str(data / "vocab.txt"),
        "init_checkpoint": str(data / "start.ckpt"),
    }
    with pytest.raises(UserError, match="--layers=mix: this model has no learned mixture"):
        vectors(None, tmp_path, ["丄"], ("mix",), **bare)
    bare["init_checkpoint"] = str(out)  # A bare checkpoint of such a run has it.
    whole = vectors(out, tmp_path, ["丄"], ("mix",))
    np.testing.assert_array_equal(vectors(None, tmp_path, ["丄"], ("mix",), **bare), whole)


@pytest.mark.processes
def test_entities_from_the_command(tmp_path):
    """The program itself, with a CRF, in bfloat16."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "train.txt").write_text("李 B-PER\n白 I-PER\n在 O\n\n" * 4, encoding="utf-8")
    result = run(
        "run_ner.py",
        *("--do_train", "--do_eval", "--crf", "--layer_mix", "--output_dir=run", "--nojit_compile"),
        *("--train_file=train.txt", "--eval_file=train.txt", "--bert_config_file=config.json"),
        *(f"--vocab_file={RESOURCES / 'vocab.txt'}", "--max_seq_length=16"),
        *("--train_batch_size=4", "--num_train_steps=2", "--precision=mixed_bfloat16"),
        folder=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert re.findall(r"layer_mix (\w+) +\d", result.stdout) == ["embeddings", "layer_1", "gamma"]
    assert json.loads((tmp_path / "run" / "task.json").read_text())["layer_mix"]
