"""Runs with --lora_rank: what is trained and saved, and that the folder is then used as such."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
import toy_task
from helpers import tensors
from toy_finetuning import settings_in
from toy_task import ToyTask

import nezha_tf
from nezha_tf import NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.checkpoints.convert import convert_checkpoint
from nezha_tf.checkpoints.name_table import AVERAGE_SUFFIX, tf1_names
from nezha_tf.checkpoints.settings import ConversionSettings
from nezha_tf.serving.export import export_folder
from nezha_tf.tasks.finetuning import sweep
from nezha_tf.training import run as training_run
from nezha_tf.util.errors import UserError

RANK, ALPHA, LAYERS, HIDDEN, INNER = 3, 12.0, 2, 16, 32
# The kernels of a layer, and their shapes, as BERT has them.
KERNELS = {
    "attention/self/query": (HIDDEN, HIDDEN),
    "attention/self/key": (HIDDEN, HIDDEN),
    "attention/self/value": (HIDDEN, HIDDEN),
    "attention/output/dense": (HIDDEN, HIDDEN),
    "intermediate/dense": (HIDDEN, INNER),
    "output/dense": (INNER, HIDDEN),
}
HEAD = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias", "output_weights", "output_bias")
SEGMENTS = "bert/embeddings/token_type_embeddings"
TEXTS = ["丄丅丆", "丂丄丄丂"]


def layer_names():
    return [f"bert/encoder/layer_{i}/{name}" for i in range(LAYERS) for name in KERNELS]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The files of the toy task, a configuration of two layers, and two encoders to begin with."""
    folder = tmp_path_factory.mktemp("toy")
    toy_task.write_files(folder)
    config = NezhaConfig.from_dict({**toy_task.CONFIG, "num_hidden_layers": LAYERS})
    config.to_json_file(str(folder / "config.json"))
    for seed, name in ((5, "start.ckpt"), (6, "other.ckpt")):
        keras.utils.set_random_seed(seed)
        checkpoints.save_tf1_checkpoint(NezhaEncoder(config), str(folder / name))
    return folder


def lora_settings(data, out, **changes):
    values = {
        "learning_rate": 0.02,
        "lora_rank": RANK,
        "lora_alpha": ALPHA,
        "init_checkpoint": str(data / "start.ckpt"),
        "num_train_steps": 8,
        "save_checkpoints_steps": 4,
        "keep_checkpoint_max": 9,
    }
    return settings_in(data, out, **{**values, **changes})


@pytest.fixture(scope="module")
def adapted(data, tmp_path_factory):
    """The settings and the folder of a run of 8 steps, with averages."""
    out = tmp_path_factory.mktemp("lora")
    settings = lora_settings(data, out, ema_decay=0.5)
    training_run.run(settings, ToyTask)
    return settings, out


def best_of(out):
    return json.loads((out / "best_checkpoint.json").read_text())["global_step"]


def merged(data, out, averages=True):
    """Returns the weights of the best checkpoint by NumPy: {TF1 name: array}."""
    ending = f"/{AVERAGE_SUFFIX}" if averages else ""
    weights, own = tensors(data / "start.ckpt"), tensors(out / f"model.ckpt-{best_of(out)}")
    for layer in layer_names():
        a, b = (own[f"{layer}/lora_kernel_{part}{ending}"] for part in "ab")
        weights[f"{layer}/kernel"] = weights[f"{layer}/kernel"] + ALPHA / RANK * a @ b
    return weights | {name: own[name + ending] for name in HEAD}


def inputs_of(tokenizer, text):
    ids = np.array([tokenizer.convert_tokens_to_ids(["[CLS]", *text, "[SEP]"])])
    return {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0}


def logits_of(folder):
    tokenizer, model = nezha_tf.load(folder)
    return np.concatenate([model(inputs_of(tokenizer, text)) for text in TEXTS])


def test_a_checkpoint_holds_adapters_head_and_their_state_alone(data, adapted):
    end = tensors(adapted[1] / "model.ckpt-8")
    trained = {*HEAD}
    count = HIDDEN * HIDDEN + HIDDEN + 2 * HIDDEN + 2
    for layer in layer_names():
        a, b = (end[f"{layer}/lora_kernel_{part}"] for part in "ab")
        inner, outer = KERNELS[layer.split("/", 3)[3]]
        assert (a.shape, b.shape) == ((inner, RANK), (RANK, outer)) and np.any(b)
        trained |= {f"{layer}/lora_kernel_a", f"{layer}/lora_kernel_b"}
        count += RANK * (inner + outer)
    assert sum(end[name].size for name in trained) == count
    slots = {f"{n}/{s}" for n in trained for s in ("adam_m", "adam_v", AVERAGE_SUFFIX)}
    state = {name for name in end if name == "global_step" or name.startswith("nezha_tf/")}
    assert set(end) == trained | slots | state | {SEGMENTS}
    start = tensors(data / "start.ckpt")
    np.testing.assert_array_equal(end[SEGMENTS], start[SEGMENTS])
    card = (adapted[1] / "README.md").read_text(encoding="utf-8")
    assert f"--lora_rank={RANK}" in card


def test_the_folder_is_the_base_with_the_merged_kernels(data, adapted):
    expected = merged(data, adapted[1])
    _, model = nezha_tf.load(adapted[1])
    weights = {name: variable.numpy() for name, variable in tf1_names(model).items()}
    assert weights.keys() == expected.keys()
    start, kernels = tensors(data / "start.ckpt"), {f"{name}/kernel" for name in layer_names()}
    for name, value in weights.items():
        if name in kernels:
            np.testing.assert_allclose(value, expected[name], atol=1e-6, err_msg=name)
            assert np.abs(value - start[name]).max() > 1e-3, name
        else:  # what is frozen stays bit by bit
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
    plain = merged(data, adapted[1], averages=False)
    assert any(np.abs(plain[name] - expected[name]).max() > 1e-4 for name in kernels)


def test_a_run_that_was_cut_off_goes_on_bit_by_bit(adapted, tmp_path, capsys):
    settings, out = adapted
    for name in ("model.ckpt-4.index", "model.ckpt-4.data-00000-of-00001", "adapters.json"):
        shutil.copy(out / name, tmp_path)
    training_run.run(dataclasses.replace(settings, output_dir=str(tmp_path)), ToyTask)
    assert f"continuing from {tmp_path}/model.ckpt-4" in capsys.readouterr().out
    once, twice = (tensors(folder / "model.ckpt-8") for folder in (out, tmp_path))
    assert once.keys() == twice.keys()
    for name, value in once.items():
        np.testing.assert_array_equal(twice[name], value, err_msg=name)


def test_the_folder_decides_later(adapted, tmp_path):
    """Predictions without the flags are those with them; exports and conversions are merged."""
    settings, out = adapted
    before = (out / "predictions.json").read_bytes()
    results = (out / "eval_results.json").read_bytes()
    later = {"lora_rank": 0, "lora_alpha": None, "do_train": False, "init_checkpoint": None}
    training_run.run(dataclasses.replace(settings, **later), ToyTask)
    assert (out / "predictions.json").read_bytes() == before
    assert (out / "eval_results.json").read_bytes() == results

    logits = logits_of(out)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    export_folder(str(out), str(tmp_path / "export"))
    exported = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    found = exported(text=tf.constant(TEXTS))["probabilities"]
    np.testing.assert_allclose(found, probabilities, atol=1e-5)
    for layout in ("nezha_tf", "tf1", "hugging_face"):
        target = tmp_path / layout
        convert_checkpoint(ConversionSettings(source=str(out), to=str(target), format=layout))
        assert not (target / "adapters.json").exists()
        np.testing.assert_allclose(logits_of(target), logits, atol=1e-5)
    prefix = str(next((tmp_path / "tf1").glob("*.index")).with_suffix(""))
    assert not any("lora" in name for name in tensors(prefix))


def copy_of(out, folder, **changes):
    """Copies a run's folder, with changes in `adapters.json`; returns the copy's path."""
    shutil.copytree(out, folder)
    path = folder / "adapters.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_the_base_may_be_moved_and_converted_but_not_replaced(data, adapted, tmp_path):
    out, base = adapted[1], tmp_path / "base"
    logits = logits_of(out)
    files = {"config_file": str(data / "config.json"), "vocab_file": str(data / "vocab.txt")}
    convert_checkpoint(
        ConversionSettings(
            source=str(data / "start.ckpt"), to=str(base), format="hugging_face", **files
        )
    )
    moved = copy_of(out, tmp_path / "moved", base=str(base))
    np.testing.assert_array_equal(logits_of(moved), logits)

    other = copy_of(out, tmp_path / "other", base=str(data / "other.ckpt"))
    line = rf"^checkpoint {other}/\S+ holds adapters of another model: .*{data}/other.ckpt are not "
    with pytest.raises(UserError, match=line + rf'.* "base" in {other}/adapters.json$'):
        nezha_tf.load(other)
    gone = copy_of(out, tmp_path / "gone", base=str(tmp_path / "none.ckpt"))
    line = rf"holds adapters of the model {tmp_path}/none.ckpt, which cannot be opened: .*none"
    with pytest.raises(UserError, match=line + rf'.*; put it back, or .* "base" in {gone}/adap'):
        nezha_tf.load(gone)
    (gone / "adapters.json").unlink()
    with pytest.raises(UserError, match=rf"{gone}/adapters.json is missing, which names the model"):
        nezha_tf.load(gone)


def test_mistakes(data, adapted, tmp_path):
    settings, out = adapted

    def refused(message, **changes):
        with pytest.raises(UserError, match=message):
            training_run.run(dataclasses.replace(settings, **changes), ToyTask)

    here = rf"the run in {out} is with --lora_rank=3 --lora_alpha=12, and this one"
    refused(rf"{here} with --lora_rank=3 --lora_alpha=6; give it the same flags", lora_alpha=6.0)
    refused(rf"{here} without --lora_rank; .* another --output_dir", lora_rank=0, lora_alpha=None)
    other = str(data / "other.ckpt")
    message = rf"the adapters in {out} belong to another model: .*{data}/start.ckpt, and .*{other}"
    refused(message, init_checkpoint=other)
    new = {"output_dir": str(tmp_path / "new")}
    refused("name it with --init_checkpoint", init_checkpoint=None, **new)
    refused("--lora_alpha=0 switches", lora_alpha=0.0, **new)
    refused("--freeze_layers=1 does nothing with --lora_rank=3", freeze_layers=1, **new)
    refused("--layer_mix freezes the layers that --lora_rank adapts", layer_mix=True, **new)
    assert not list((tmp_path / "new").glob("model.ckpt-*"))


class OtherReplicas(tf.distribute.MirroredStrategy):
    """Uses keys that no other test uses: a process sums all values of a key like the first one."""

    _collective_key_base = 2000


def test_runs_of_a_sweep_on_replicas_begin_with_the_base(data, tmp_path):
    """The best weights, which stand in the compiled model after a run, are merged ones."""
    flags = {"num_train_steps": 2, "save_checkpoints_steps": 2, "layer_decay": 0.9}
    settings = lora_settings(data, tmp_path, do_predict=False, **flags)
    runs = sweep.Sweep(OtherReplicas(["CPU:0", "CPU:1"]), ToyTask(settings))
    weights = []
    for number in ("first", "second"):
        runs.outcome(0.02, 8, [(0.02, 8)])
        folder = tmp_path / "lr_0.02" / "seed_8"
        weights.append(tensors(folder / "model.ckpt-2"))
        folder.rename(tmp_path / number)
    for name, value in weights[0].items():
        np.testing.assert_allclose(weights[1][name], value, atol=1e-6, err_msg=name)
    assert np.any(weights[0]["bert/encoder/layer_1/output/dense/lora_kernel_b"])


def test_adapters_of_a_model_with_adapters(data, adapted, tmp_path):
    """The base is the first run's averages; in micro-batches, and with layers computed again."""
    flags = {"num_train_steps": 1, "do_eval": False, "do_predict": False}
    flags |= {"gradient_accumulation_steps": 2, "recompute": True}
    settings = lora_settings(data, tmp_path, init_checkpoint=str(adapted[1]), **flags)
    training_run.run(settings, ToyTask)
    before = nezha_tf.load(adapted[1])[1]
    weights = {name: variable.numpy() for name, variable in tf1_names(before).items()}
    own = tensors(tmp_path / "model.ckpt-1")
    loaded = tf1_names(nezha_tf.load(tmp_path)[1])
    for layer in layer_names():
        a, b = (own[f"{layer}/lora_kernel_{part}"] for part in "ab")
        expected = weights[f"{layer}/kernel"] + ALPHA / RANK * a @ b
        np.testing.assert_allclose(loaded[f"{layer}/kernel"].numpy(), expected, atol=1e-6)
