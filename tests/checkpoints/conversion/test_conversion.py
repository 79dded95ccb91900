"""Models from one layout to another: the same bits, the same outputs, and what lies beside them."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from checkpoint_models import (
    CLASSIFICATION,
    MULTIPLE_CHOICE,
    TAGGING,
    UNILM,
    assert_equal,
    config_of,
    convert,
    unilm_weights,
    weights_in,
    weights_like,
    weights_of_originals,
    write_model,
    write_random,
    write_vocabulary,
)
from conftest import GOLDEN, RESOURCES
from helpers import GOLDEN_MODELS
from hugging_face_peer import KINDS, weights_of
from safetensors.numpy import load_file, save_file

from nezha_tf import NezhaConfig, NezhaForMaskedLM, NezhaForPreTraining, Tokenizer, checkpoints
from nezha_tf.checkpoints import convert as conversion
from nezha_tf.checkpoints import folder as model_folder
from nezha_tf.checkpoints import layouts, tf1
from nezha_tf.checkpoints.conversion_weights import Weights, read_weights
from nezha_tf.checkpoints.convert import SourceModel
from nezha_tf.checkpoints.kinds import kinds
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.tf1 import SEGMENT_TABLE
from nezha_tf.objectives.mixture import ObjectiveMixture
from nezha_tf.util.errors import UserError

SAFETENSORS = "model.safetensors"
FILES = {"config": "config.json", "vocab": "vocab.txt"}
ALBERT = {
    "position_encoding": "absolute",
    "num_hidden_layers": 4,
    "num_hidden_groups": 2,
    "embedding_size": 5,
}
NEZHA = {"position_encoding": "functional_relative"}
NEZHA |= {"num_hidden_groups": None, "embedding_size": None}
LEARNED = {"position_encoding": "learned_relative"}


@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_golden_models_come_back_bit_by_bit(tmp_path, name):
    expected = weights_of_originals(name)
    source = GOLDEN / name / "model.ckpt"
    report = convert(source, tmp_path / "ours", "nezha_tf")
    assert f"left out, optimizer slots   {2 * len(expected)}" in report
    assert "1: global_step" in report and "no vocabulary" in report
    assert_equal(weights_in(tmp_path / "ours" / "model.ckpt-5"), expected)
    convert(tmp_path / "ours", tmp_path / "tf1", "tf1")
    assert_equal(weights_in(tmp_path / "tf1" / "bert_model.ckpt"), expected)
    convert(tmp_path / "ours", tmp_path / "hf", "hugging_face")
    prefix = "nezha." if name == "nezha_tiny" else "bert."
    assert_equal(load_file(tmp_path / "hf" / SAFETENSORS), weights_of(name, prefix=prefix))
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["hidden_act"] == "gelu_new"
    convert(tmp_path / "hf", tmp_path / "back", "tf1")
    assert_equal(weights_in(tmp_path / "back" / "bert_model.ckpt"), expected)
    original = NezhaConfig.from_json_file(GOLDEN / name / "bert_config.json")
    assert NezhaConfig.from_json_file(tmp_path / "back" / "bert_config.json") == original


@pytest.mark.parametrize("kind", KINDS)
def test_hugging_face_comes_back_bit_by_bit(tmp_path, kind):
    peer = GOLDEN / f"hugging_face_{kind}"
    report = convert(peer, tmp_path / "ours", "nezha_tf")
    assert "not compared with Hugging Face's code (no_such_library not installed)" in report
    assert "pip install -e '.[transformers]'" in report
    convert(tmp_path / "ours", tmp_path / "back", "hugging_face")
    stored = load_file(peer / SAFETENSORS)
    stored.pop("roformer.encoder.embed_positions.weight", None)  # Sinusoids, so no weights.
    assert_equal(load_file(tmp_path / "back" / SAFETENSORS), stored)
    theirs, ours = (
        json.loads((folder / "config.json").read_text()) for folder in (peer, tmp_path / "back")
    )
    assert {key: theirs[key] for key in ours} == ours


@pytest.mark.parametrize(
    "kind, task, changes",
    [
        ("classification", CLASSIFICATION, {}),
        ("tagging", TAGGING, {}),
        ("reading_comprehension", None, {}),
        ("multiple_choice", None, {}),
        ("pretraining", None, ALBERT),
    ],
)
def test_random_models_come_back_bit_by_bit(tmp_path, kind, task, changes):
    """Through both of the other layouts."""
    config, weights = write_random(tmp_path / "run", kind, task, seed=len(kind), **changes)
    report = convert(tmp_path / "run", tmp_path / "tf1", "tf1")
    assert "nezha_tf before, nezha_tf after\n  sequence_output" in report
    assert f"left out, moving averages   {len(weights)}" in report
    assert (tmp_path / "tf1" / "task.json").exists() == bool(task)
    convert(tmp_path / "tf1", tmp_path / "hugging_face", "hugging_face")
    values = json.loads((tmp_path / "hugging_face" / "config.json").read_text())
    assert (values["model_type"] == "albert") == bool(changes)
    back = tmp_path / "back"
    convert(tmp_path / "hugging_face", back, "nezha_tf")
    assert_equal(weights_in(back / "model.ckpt-0"), weights)
    # A BERT has no distances, and Hugging Face's file no place for a bound on them.
    assert NezhaConfig.from_json_file(back / "bert_config.json") == config
    assert (back / "vocab.txt").read_bytes() == (tmp_path / "run" / "vocab.txt").read_bytes()
    # The architecture in Hugging Face's file is as good as one for the settings of these.
    is_told = kind in ("reading_comprehension", "multiple_choice")
    assert (back / "task.json").exists() == (bool(task) or is_told)
    if task:
        assert json.loads((back / "task.json").read_text()) == task
        opened = model_folder.open_folder(back)
        assert opened.make_model().num_labels == 3 and not opened.do_lower_case


def test_a_vocabulary_is_written_token_by_token(tmp_path):
    """transformers would take a byte order mark for a part of the first token."""
    write_random(tmp_path / "run", seed=8)
    plain = (tmp_path / "run" / "vocab.txt").read_bytes()
    marked = b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")
    (tmp_path / "run" / "vocab.txt").write_bytes(marked)
    convert(tmp_path / "run", tmp_path / "new", "hugging_face")
    assert (tmp_path / "new" / "vocab.txt").read_bytes() == plain


def test_a_model_on_a_remote_store_is_converted(tmp_path):
    _, weights = write_random(tmp_path / "run", seed=9)
    remote = "ram://conversion/published"
    for path in (tmp_path / "run").iterdir():
        tf.io.gfile.copy(str(path), f"{remote}/{path.name}")
    assert "no vocabulary" not in convert(remote, tmp_path / "new", "tf1")
    assert_equal(weights_in(tmp_path / "new" / "bert_model.ckpt"), weights)
    vocabulary = (tmp_path / "new" / "vocab.txt").read_bytes()
    assert vocabulary == (tmp_path / "run" / "vocab.txt").read_bytes()
    assert SourceModel(f"{remote}/model.ckpt-7").path == remote
    with pytest.raises(UserError, match=r"no checkpoint at ram://conversion/nothing"):
        convert("ram://conversion/nothing", tmp_path / "none", "tf1")
    with pytest.raises(UserError, match=r"ram://new is not on this machine; name a folder here"):
        convert(remote, "ram://new", "tf1")


def test_the_loss_scale_of_nezhas_programs_is_no_weight(tmp_path):
    """These are the names of TF 1.15's ExponentialUpdateLossScaleManager."""
    rng = np.random.default_rng(10)
    config = config_of(rng)
    weights = weights_like(rng, "masked_lm", config)
    scale = {"loss_scale": np.float32(2**32), "good_steps": np.int32(5), "bad_steps": np.int32(0)}
    write_model(tmp_path / "run", config, {**weights})
    tf1.write_tensors(tmp_path / "run" / "model.ckpt-7", {**weights, **scale})
    report = convert(tmp_path / "run", tmp_path / "tf1", "tf1")
    assert "state of the run" in report and "3: bad_steps, good_steps, loss_scale" in report
    assert_equal(weights_in(tmp_path / "tf1" / "bert_model.ckpt"), weights)
    model = NezhaForMaskedLM(config)
    assert checkpoints.load(model, tmp_path / "run" / "model.ckpt-7").unused == []


def test_what_the_converter_assumes_of_the_case_is_told(tmp_path):
    write_random(tmp_path / "run", seed=11)
    path = tmp_path / "run" / "vocab.txt"
    path.write_text(path.read_text().replace("w1\n", "Ab\n"))
    [note] = SourceModel(str(tmp_path / "run")).notes
    assert f"capitals, such as Ab in {path}; if the model is cased, pass --nodo_lower" in note
    assert SourceModel(str(tmp_path / "run"), do_lower_case=True).notes == []
    assert "capitals" not in convert(
        tmp_path / "run", tmp_path / "new", "nezha_tf", do_lower_case=False
    )
    assert not model_folder.open_folder(tmp_path / "new").do_lower_case


def test_unilm(tmp_path):
    """Six segment rows, LayerNorm's own epsilon and the exact gelu; from a file by its name."""
    weights = unilm_weights(np.random.default_rng(0), UNILM, old=True)
    save_file(weights, tmp_path / "unilm1-base-cased.safetensors")
    (tmp_path / "bert_config.json").write_text(json.dumps(UNILM))
    write_vocabulary(tmp_path / "vocab.txt", 30)
    source = tmp_path / "unilm1-base-cased.safetensors"
    report = convert(source, tmp_path / "ours", "nezha_tf", do_lower_case=False)
    assert "no model_type: read as the configuration of bert in PyTorch" in report
    assert "six segment rows: read as a UniLM" in report
    opened = model_folder.open_folder(tmp_path / "ours")
    config, model = opened.config, opened.make_model()
    assert (config.layer_norm_eps, config.hidden_act) == (1e-5, "gelu_erf")
    assert (config.type_vocab_size, opened.do_lower_case) == (6, False)
    ids = np.arange(5, 15)[None]
    inputs = {"input_ids": ids, "input_mask": 0 * ids + 1, "segment_ids": 0 * ids + 4}
    embedded = sum(
        weights[f"bert.embeddings.{name}_embeddings.weight"][rows]
        for name, rows in (("word", ids[0]), ("token_type", 4), ("position", np.arange(10)))
    )
    centred = embedded - embedded.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    gamma, beta = (weights[f"bert.embeddings.LayerNorm.{name}"] for name in ("gamma", "beta"))
    outputs = model({**inputs, "masked_lm_positions": np.array([[1]])}, all_outputs=True)
    np.testing.assert_allclose(outputs["embedding_output"][0], normed * gamma + beta, atol=1e-6)
    # And out again: the same names, in PyTorch's spelling of today, and no table twice.
    convert(tmp_path / "ours", tmp_path / "hf", "hugging_face")
    renamed = {name.replace("gamma", "weight").replace("beta", "bias"): name for name in weights}
    del renamed["cls.predictions.decoder.weight"]
    expected = {name: weights[theirs] for name, theirs in renamed.items()}
    assert_equal(load_file(tmp_path / "hf" / SAFETENSORS), expected)


def test_half_precision(tmp_path):
    """Of a source in half precision nothing is lost; --dtype=float16 rounds once."""
    rng = np.random.default_rng(1)
    config = config_of(rng)
    weights = weights_like(rng, "pretraining", config)
    half = {name: value.astype(ml_dtypes.bfloat16) for name, value in weights.items()}
    single = {name: value.astype(np.float32) for name, value in half.items()}
    write_model(tmp_path / "run", config, half)
    convert(tmp_path / "run", tmp_path / "hf", "hugging_face")
    convert(tmp_path / "hf", tmp_path / "half", "hugging_face", dtype="float16")
    assert json.loads((tmp_path / "half" / "config.json").read_text())["torch_dtype"] == "float16"
    rounded, exact = (load_file(tmp_path / name / SAFETENSORS) for name in ("half", "hf"))
    assert_equal(rounded, {name: value.astype(np.float16) for name, value in exact.items()})
    convert(tmp_path / "half", tmp_path / "ours", "nezha_tf", dtype="float16")
    found = weights_in(tmp_path / "ours" / "model.ckpt-0")
    assert_equal(found, {name: value.astype(np.float16) for name, value in single.items()})


def test_averages_in_place_of_the_weights(tmp_path):
    rng = np.random.default_rng(2)
    config = config_of(rng)
    weights = weights_like(rng, "classification", config)
    task = {**CLASSIFICATION, "uses_averages": True}
    write_model(tmp_path / "run", config, weights, task)
    write_model(tmp_path / "plain", config, weights)
    averages = {name: value + 1 for name, value in weights.items()}
    report = convert(tmp_path / "run", tmp_path / "there", "tf1")
    assert "moving averages" not in report
    assert_equal(weights_in(tmp_path / "there" / "bert_model.ckpt"), averages)
    assert json.loads((tmp_path / "there" / "task.json").read_text()) == CLASSIFICATION
    assert_equal(read_weights(SourceModel(tmp_path / "plain"), averages=True).values, averages)
    with pytest.raises(UserError, match=r"holds no moving averages .* --averages"):
        read_weights(SourceModel(tmp_path / "there"), averages=True)


def test_segments(tmp_path):
    config, weights = write_random(tmp_path / "two", "encoder", seed=3)
    report = convert(tmp_path / "two", tmp_path / "six", "hugging_face", type_vocab_size=6)
    assert "2 become 6: 2, 3 and 4 begin as row 0, and 5 as row 1" in report
    table = load_file(tmp_path / "six" / SAFETENSORS)["embeddings.token_type_embeddings.weight"]
    np.testing.assert_array_equal(table, weights[SEGMENT_TABLE][[0, 1, 0, 0, 0, 1]])
    report = convert(tmp_path / "six", tmp_path / "back", "nezha_tf", type_vocab_size=2)
    assert "6 become 2: rows 0 and 1 are kept" in report
    assert_equal(weights_in(tmp_path / "back" / "model.ckpt-0"), weights)
    assert NezhaConfig.from_json_file(tmp_path / "back" / "bert_config.json") == config
    with pytest.raises(UserError, match="--type_vocab_size=5: the model has 2 segment rows"):
        convert(tmp_path / "two", tmp_path / "five", "tf1", type_vocab_size=5)


def test_heads_and_pooler_are_left_out_on_request(tmp_path):
    config, weights = write_random(tmp_path / "run", "pretraining", seed=4)
    report = convert(tmp_path / "run", tmp_path / "body", "hugging_face", drop=["cls/"])
    assert "left out, weights of --drop" in report and "cls/seq_relationship/output_bias" in report
    body = {name: value for name, value in weights.items() if name.startswith("bert/")}
    found = load_file(tmp_path / "body" / SAFETENSORS)
    assert len(found) == len(body) and "embeddings.word_embeddings.weight" in found
    # No pooler, and one head of two.
    lacking = {n: v for n, v in weights.items() if "pooler" not in n and "seq_rel" not in n}
    write_model(tmp_path / "lacking", config, {**lacking, "bert/extra": np.ones(2, "float32")})
    with pytest.raises(UserError, match=r"lacks bert/pooler/dense/kernel, .* and has bert/extra"):
        convert(tmp_path / "lacking", tmp_path / "none", "tf1", allow_missing=[""])
    allowed = ["", "bert/pooler", "bert/extra"]
    report = convert(tmp_path / "lacking", tmp_path / "tf1", "tf1", allow_missing=allowed)
    assert "unexpected weights" in report and "1: bert/extra" in report
    assert "2: bert/pooler/dense/kernel, bert/pooler/dense/bias" in report
    assert "masked_lm_logits" in report and "pooled_output" not in report
    assert_equal(weights_in(tmp_path / "tf1" / "bert_model.ckpt"), lacking)
    # Nothing can be computed without its embeddings.
    del lacking[SEGMENT_TABLE]
    write_model(tmp_path / "nothing", config, lacking)
    allowed += [SEGMENT_TABLE]
    report = convert(tmp_path / "nothing", tmp_path / "half", "tf1", allow_missing=allowed)
    assert f"not compared: the model cannot run without {SEGMENT_TABLE}" in report


@pytest.mark.parametrize(
    "changes, layout, message",
    [
        ({"position_encoding": "rotary"}, "hugging_face", "'rotary' with embedding_size 5 and"),
        ({"embedding_size": None}, "hugging_face", "with no embedding_size and num_hidden_groups"),
        ({"num_hidden_groups": None}, "hugging_face", "embedding_size 5 and no num_hidden_groups"),
        ({"position_encoding": "functional_relative"}, "tf1", "num_hidden_groups 2 has no counter"),
        ({"embedding_size": None}, "tf1", "embedding_size None has no counterpart in TF1"),
        ({"num_hidden_groups": None}, "tf1", "embedding_size 5 has no counterpart in TF1"),
        # NEZHA's attention_layer has the number 64 in its code; a BERT has no distances.
        (NEZHA | {"max_relative_position": 63}, "hugging_face", None),
        (NEZHA | {"max_relative_position": 64}, "tf1", None),
        (NEZHA | {"max_relative_position": 63}, "tf1", "max_relative_position 63 has no counterp"),
        ({"max_relative_position": 63}, "tf1", None),
        (NEZHA | LEARNED, "hugging_face", "'learned_relative' has no counterpart in Hugging Face"),
        (NEZHA | LEARNED, "tf1", "'learned_relative' has no counterpart in TF1's"),
        (NEZHA | {"hidden_act": "gelu_erf"}, "tf1", "hidden_act 'gelu_erf' has no counterpart"),
    ],
)
def test_configurations_that_the_originals_have_not(changes, layout, message):
    config = NezhaConfig(vocab_size=9, **{**ALBERT, **changes})
    weights = Weights(kinds()["encoder"], 1, {}, [], [])
    if message is None:
        layouts.check_format(layout, weights, config, "float32")
        return
    with pytest.raises(UserError, match=message) as error:
        layouts.check_format(layout, weights, config, "float32")
    assert "\n" not in str(error.value)


def test_what_has_no_counterpart_is_refused(tmp_path):
    rng = np.random.default_rng(5)
    config = config_of(rng, hidden_act="gelu_erf", layer_norm_eps=1e-5)
    chain = weights_like(rng, "crf_tagging", config)
    write_model(tmp_path / "chain", config, chain, {**TAGGING, "crf": True})
    for layout, dtype, message in (
        ("hugging_face", "float32", "crf/.* has no counterpart .* --drop=crf/"),
        ("tf1", "float16", "--dtype=float16: with --format=tf1 take float32"),
    ):
        with pytest.raises(UserError, match=message):
            convert(tmp_path / "chain", tmp_path / "none", layout, dtype=dtype)
        assert not (tmp_path / "none").exists()
    report = convert(tmp_path / "chain", tmp_path / "hf", "hugging_face", drop=["crf/"])
    assert "functional_relative, tagging" in report or "absolute, tagging" in report
    assert json.loads((tmp_path / "hf" / "task.json").read_text()) == TAGGING


def test_a_pretrained_model_stays_whole_or_is_of_no_task(tmp_path):
    """Each new folder opens, also where a part that an objective needs was left out."""
    objectives = "bidirectional,permutation,replaced_tokens"
    lost = ["query_stream/", "generator/", "discriminator_predictions/"]
    rng = np.random.default_rng(6)
    sizes = {"num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 12}
    config = config_of(rng, hidden_act="gelu", **sizes)
    own = ObjectiveMixture.from_text(objectives).model
    weights = {n: rng.normal(size=v.shape).astype("f4") for n, v in tf1_names(own(config)).items()}
    task = {"task": "pretraining", "objectives": objectives, "max_seq_length": 8}
    task |= {"do_lower_case": True, "uses_averages": False}
    write_model(tmp_path / "run", config, weights, task)
    convert(tmp_path / "run", tmp_path / "ours", "nezha_tf")
    assert_equal(weights_in(tmp_path / "ours" / "model.ckpt-7"), weights)
    opened = model_folder.open_folder(tmp_path / "ours")
    assert opened.task == task and type(opened.make_model()) is own
    found = read_weights(SourceModel(tmp_path / "run"))
    for layout in ("tf1", "hugging_face"):
        with pytest.raises(UserError, match="has no counterpart in") as error:
            layouts.check_format(layout, found, config, "float32")
        assert str(error.value).endswith(f"--drop={','.join(lost)}")
    convert(tmp_path / "run", tmp_path / "hugging_face", "hugging_face", drop=lost)
    convert(tmp_path / "run", tmp_path / "part", "nezha_tf", drop=lost[:1])
    for folder in ("hugging_face", "part"):
        opened = model_folder.open_folder(tmp_path / folder)
        assert opened.task == {"task": None} and opened.do_lower_case
        assert type(opened.make_model()) is NezhaForPreTraining


def test_a_model_that_computes_something_else_is_not_left(tmp_path, monkeypatch):
    write, added = conversion.layouts.write, []

    def write_another(folder, layout, source, weights, config):
        values = {**weights.values, SEGMENT_TABLE: weights.values[SEGMENT_TABLE][::-1] + added[-1]}
        return write(folder, layout, source, weights._replace(values=values), config)

    monkeypatch.setattr(conversion.layouts, "write", write_another)
    source = GOLDEN / "nezha_tiny" / "model.ckpt"
    for value, shown in ((0, r"\d.\de"), (np.nan, "nan")):
        added.append(value)
        with pytest.raises(UserError, match=f"sequence_output of the new model .* by {shown}"):
            convert(source, tmp_path / "new", "hugging_face")
        assert list(tmp_path.iterdir()) == []


def test_labels_and_case_are_told_in_the_way_of_hugging_face(tmp_path):
    rng = np.random.default_rng(0)
    config = config_of(rng, position_encoding="absolute", hidden_act="gelu_erf")
    for task, architecture, problem in (
        (CLASSIFICATION, "BertForSequenceClassification", "multi_label_classification"),
        (TAGGING, "BertForTokenClassification", None),
    ):
        run, target = tmp_path / task["task"], tmp_path / f"{task['task']}_there"
        write_model(run, config, weights_like(rng, task["task"], config), task)
        convert(run, target, "hugging_face")
        values = json.loads((target / "config.json").read_text())
        assert values["architectures"] == [architecture]
        assert values["id2label"] == {"0": "差", "1": "中", "2": "好"}
        assert values["label2id"] == {"差": 0, "中": 1, "好": 2}
        assert values.get("problem_type") == problem
        assert (values["hidden_act"], values["pad_token_id"]) == ("gelu", 0)
        tokenizer = json.loads((target / "tokenizer_config.json").read_text())
        assert tokenizer["do_lower_case"] is False
        # And back, where no task.json goes along; the configuration may lie elsewhere.
        (target / "task.json").unlink()
        alone = tmp_path / f"{task['task']}_alone"
        alone.mkdir()
        (target / SAFETENSORS).rename(alone / SAFETENSORS)
        files = {"config_file": str(target / "config.json"), "do_lower_case": False}
        back = tmp_path / f"{task['task']}_back"
        convert(alone / SAFETENSORS, back, "nezha_tf", **files)
        found = json.loads((back / "task.json").read_text())
        # The lengths are those that the table of places allows.
        for name in {*task} - {"max_seq_length", "window_stride"}:
            assert found[name] == task[name], name
        # Labels, as the folder of another task, is no match.
        (run / "task.json").write_text(json.dumps({**task, "labels": ["a", "b"]}))
        with pytest.raises(UserError, match=r"has 3 rows, but task\.json .* names 2 labels"):
            convert(run, tmp_path / "none", "hugging_face")
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_the_tokenizers_library_cuts_text_alike(tmp_path, do_lower_case):
    tokenizers = pytest.importorskip("tokenizers", reason="pip install -e '.[transformers]'")
    rng = np.random.default_rng(0)
    sizes = {"vocab_size": 9200, "max_position_embeddings": 16}
    config = config_of(rng, position_encoding="absolute", **sizes)
    task = {**CLASSIFICATION, "do_lower_case": do_lower_case}
    write_model(tmp_path / "run", config, weights_like(rng, "classification", config), task)
    shutil.copy(RESOURCES / "vocab.txt", tmp_path / "run")
    convert(tmp_path / "run", tmp_path / "there", "hugging_face")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "there" / "tokenizer.json"))
    for folder in (tmp_path / "run", tmp_path / "there"):
        ours = Tokenizer.from_preset(folder)
        for text in ("Café Running", "今天，天气不错！"):
            assert ours(text)["input_ids"][0].tolist() == theirs.encode(text).ids
    (tmp_path / "there" / "vocab.txt").unlink()
    convert(tmp_path / "there", tmp_path / "bare", "hugging_face")
    assert not (tmp_path / "bare" / "tokenizer.json").exists()


def test_a_head_of_one_output_is_of_the_class_that_a_file_names(tmp_path):
    """A model that chooses among texts has the weights of a regression."""
    changes = {"position_encoding": "absolute", "hidden_act": "gelu_erf"}
    write_random(tmp_path / "run", "multiple_choice", MULTIPLE_CHOICE, **changes)
    convert(tmp_path / "run", tmp_path / "hf", "hugging_face")
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    assert values["architectures"] == ["BertForMultipleChoice"]
    (tmp_path / "hf" / "task.json").unlink()
    for name, task in (
        ("BertForMultipleChoice", "multiple_choice"),
        ("BertForSequenceClassification", "classification"),
    ):
        path.write_text(json.dumps({**values, "architectures": [name]}))
        source = SourceModel(tmp_path / "hf")
        assert source.task["task"] == read_weights(source).kind.name == task
