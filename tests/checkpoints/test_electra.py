"""ELECTRA: its two models in one TF1 checkpoint, transformers' classes, and what is told."""

import json
import re
import shutil

import numpy as np
import pytest
from checkpoint_models import (
    CLASSIFICATION,
    TAGGING,
    assert_computes_the_same,
    assert_equal,
    convert,
    logits_and_figures,
    weights_like,
    write_model,
    write_vocabulary,
)
from conftest import GOLDEN
from safetensors.numpy import load_file, save_file
from scipy.special import erf

from nezha_tf import NezhaConfig, NezhaEncoder, NezhaForMaskedLM, checkpoints
from nezha_tf.checkpoints import tf1
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.kinds import kind_of_architecture, kinds
from nezha_tf.checkpoints.name_table import hugging_face_name, tf1_name_of, tf1_names
from nezha_tf.modeling.finetuning import NezhaForSequenceClassification
from nezha_tf.modeling.replaced_tokens import NezhaDiscriminator
from nezha_tf.util.errors import UserError

PEERS = {
    "discriminator": GOLDEN / "hugging_face_electra_discriminator",
    "generator": GOLDEN / "hugging_face_electra",
}
POOLER = "bert/pooler/"
# The ends of the names of transformers' classes, by our kinds.
ENDS = {
    "discriminator": "PreTraining",
    "masked_lm": "MaskedLM",
    "classification": "SequenceClassification",
    "tagging": "TokenClassification",
    "reading_comprehension": "QuestionAnswering",
    "multiple_choice": "MultipleChoice",
}


def tf1_name(name, model):
    """Returns the name in google-research/electra of a weight of transformers' ELECTRA."""
    name = name.replace("generator_lm_head.bias", "generator_predictions.output_bias")
    words = name.replace("encoder.layer.", "encoder.layer_").split(".")
    is_shared = words[1] == "embeddings"
    if words[0] == "electra" and not is_shared:
        words[0] = {"discriminator": "electra", "generator": "generator"}[model]
    if "LayerNorm" in words:
        words[-1] = {"weight": "gamma", "bias": "beta"}[words[-1]]
    elif words[-1] == "weight":
        words[-1:] = [] if words[-2].endswith("_embeddings") else ["kernel"]
    return "/".join(words).replace("dense_prediction", "dense_1")


def config_of(model, **changes):
    """Returns the keys of a model's `config.json`, without its class."""
    values = json.loads((PEERS[model] / "config.json").read_text())
    return {**{key: v for key, v in values.items() if key != "architectures"}, **changes}


@pytest.fixture(scope="module")
def tf1_weights():
    """Returns the weights of both models by the names of google-research/electra."""
    found = {}
    for model, peer in PEERS.items():
        for name, value in load_file(peer / "model.safetensors").items():
            name = tf1_name(name, model)
            found[name] = value.T if name.endswith("/kernel") else value
    return found


@pytest.fixture
def published(tmp_path, tf1_weights):
    """Returns a folder as HFL published it, with slots of the training as in Google's files."""
    slots = {f"{name}/adam_m": value + 1 for name, value in tf1_weights.items()}
    tf1.write_tensors(
        tmp_path / "electra_tiny.ckpt", {**tf1_weights, **slots, "global_step": np.int64(9)}
    )
    tf1.name_newest(tmp_path, ["electra_tiny.ckpt"])
    for model in PEERS:
        (tmp_path / f"tiny_{model}_config.json").write_text(json.dumps(config_of(model)))
    write_vocabulary(tmp_path / "vocab.txt", 30)
    return tmp_path


def test_the_discriminator_computes_what_transformers_does():
    model = open_folder(PEERS["discriminator"]).make_model()
    assert type(model) is NezhaDiscriminator
    assert_computes_the_same(PEERS["discriminator"], model)


def test_each_model_of_a_tf1_checkpoint(published, capsys):
    """The configuration says which one is read; the numbers are those of transformers."""
    for model, kind, rest in (
        ("discriminator", NezhaDiscriminator, "generator/ (34 weights)"),
        ("generator", NezhaForMaskedLM, "electra/ (32 weights)"),
    ):
        if model == "generator":
            shutil.copy(published / "tiny_generator_config.json", published / "config.json")
        opened = open_folder(published).make_model()
        assert type(opened) is kind
        assert_computes_the_same(PEERS[model], opened)
        assert f"is opened as {kind.__name__}; there, but not" in (told := capsys.readouterr().err)
        assert rest in told and told.count("\n") == 1
    report = convert(published, published / "hf", "hugging_face")
    assert re.search(r"left out, ELECTRA's other model +\d+\n", report)
    stored = load_file(PEERS["generator"] / "model.safetensors")
    assert_equal(load_file(published / "hf" / "model.safetensors"), stored)


def test_the_encoder_is_a_start_for_a_task(published):
    config = NezhaConfig.from_json_file(published / "tiny_discriminator_config.json")
    report = checkpoints.load(
        NezhaForSequenceClassification(config, 2), published, (POOLER, "output_")
    )
    assert sorted(report.missing) == [
        *(f"{POOLER}dense/{part}" for part in ("bias", "kernel")),
        "output_bias",
        "output_weights",
    ]
    assert {name.split("/")[0] for name in report.unused} == {
        "discriminator_predictions",
        "generator",
        "generator_predictions",
    }
    with pytest.raises(UserError, match=r"it is ELECTRA's discriminator, .* take the generator"):
        checkpoints.load(NezhaForMaskedLM(config), published, (POOLER,))


def test_a_folder_of_googles_has_no_configuration(published):
    """One line says all of it that the weights say."""
    for model in PEERS:
        (published / f"tiny_{model}_config.json").unlink()
    with pytest.raises(UserError, match=r"no bert_config\.json or config\.json in ") as error:
        open_folder(published)
    texts = re.findall(r"\{.*?\}", str(error.value))
    for model, text in zip(PEERS, texts, strict=True):
        expected = config_of(model, num_attention_heads=1)  # by the programs, one for each 64
        found = json.loads(text)
        assert found == {key: expected[key] for key in found} and len(found) == 9


def test_without_model_type_gelu_is_still_exact(published, capsys):
    values = config_of("discriminator")
    del values["model_type"]
    (published / "bert_config.json").write_text(json.dumps(values))
    model = open_folder(published).make_model()
    assert "has no model_type: read as the configuration of ELECTRA" in capsys.readouterr().err
    assert_computes_the_same(PEERS["discriminator"], model)


def test_of_two_models_of_one_size_the_class_decides(tmp_path, tf1_weights):
    """As in google's electra_small, whose generator is as wide as its discriminator."""
    weights = {
        name.replace("electra/", "generator/", 1): value * 0.5
        for name, value in tf1_weights.items()
        if name.startswith("electra/encoder/")
    }
    weights |= {n: v for n, v in tf1_weights.items() if not n.startswith("generator")}
    shapes = {"dense/kernel": (16, 16), "output_bias": 30}
    shapes |= dict.fromkeys(("dense/bias", "LayerNorm/gamma", "LayerNorm/beta"), 16)
    weights |= {f"generator_predictions/{n}": np.ones(s, "f4") for n, s in shapes.items()}
    tf1.write_tensors(tmp_path / "electra_small", weights)
    name = "encoder/layer_1/output/dense/kernel"
    for classes, kind, factor in (
        (None, NezhaDiscriminator, 1),
        (["ElectraForMaskedLM"], NezhaForMaskedLM, 0.5),
    ):
        values = config_of("discriminator", architectures=classes)
        (tmp_path / "config.json").write_text(json.dumps(values))
        model = open_folder(tmp_path).make_model()
        assert type(model) is kind
        found = tf1_names(model)[f"bert/{name}"].numpy()
        np.testing.assert_array_equal(found, tf1_weights[f"electra/{name}"] * factor)


def body():
    """Returns the weights of transformers' encoder."""
    found = load_file(PEERS["discriminator"] / "model.safetensors")
    return {name: value for name, value in found.items() if name.startswith("electra.")}


def gelu(values):
    return values * (1 + erf(values / np.sqrt(2))) / 2


@pytest.mark.parametrize(
    "end, first, last",
    [
        ("SequenceClassification", "classifier.dense", "classifier.out_proj"),
        ("TokenClassification", None, "classifier"),
        ("QuestionAnswering", None, "qa_outputs"),
        ("MultipleChoice", "sequence_summary.summary", "classifier"),
    ],
)
def test_heads_of_transformers(tmp_path, end, first, last):
    """Their formulas, in NumPy, on the stored states of transformers."""
    rng = np.random.default_rng(len(end))
    rows = {"MultipleChoice": 1, "QuestionAnswering": 2}.get(end, 3)
    sizes = {**({first: 16} if first else {}), last: rows}
    head = {f"{name}.weight": rng.normal(size=(n, 16)).astype("f4") for name, n in sizes.items()}
    head |= {f"{name}.bias": rng.normal(size=n).astype("f4") for name, n in sizes.items()}
    save_file({**body(), **head}, tmp_path / "model.safetensors")
    labels = {"0": "O", "1": "B-A", "2": "I-A"} if rows == 3 else None
    values = config_of("discriminator", architectures=[f"ElectraFor{end}"], id2label=labels)
    (tmp_path / "config.json").write_text(json.dumps(values))
    model = open_folder(tmp_path).make_model()
    logits, figures = logits_and_figures(model, PEERS["discriminator"])
    states = figures["sequence_output"]
    if first:
        states = gelu(states[:, 0] @ head[f"{first}.weight"].T + head[f"{first}.bias"])
    expected = states @ head[f"{last}.weight"].T + head[f"{last}.bias"]
    np.testing.assert_allclose(logits, expected[:, 0] if rows == 1 else expected, atol=1e-4)


def write_run(folder, kind, task):
    """Writes a model of ELECTRA as a run leaves it; returns its weights."""
    config = NezhaConfig.from_dict(config_of("generator"))
    weights = weights_like(np.random.default_rng(len(kind)), kind, config)
    write_model(folder, config, weights, task)
    return weights


def test_a_classifier_becomes_one_of_transformers_bit_by_bit(tmp_path):
    weights = write_run(tmp_path / "run", "classification", CLASSIFICATION)
    convert(tmp_path / "run", tmp_path / "there", "hugging_face")
    values = json.loads((tmp_path / "there" / "config.json").read_text())
    assert values["architectures"] == ["ElectraForSequenceClassification"]
    assert values["embedding_size"] == 16 and "pooler_act" not in values
    found = load_file(tmp_path / "there" / "model.safetensors")
    assert {name.split(".")[0] for name in found} == {"electra", "classifier"}
    assert len(found) == len(weights)
    for ours, theirs in (
        ("bert/pooler/dense/kernel", "classifier.dense.weight"),
        ("output_weights", "classifier.out_proj.weight"),
        ("bert/encoder/embedding_hidden_mapping_in/kernel", "electra.embeddings_project.weight"),
    ):
        value = weights[ours].T if ours.endswith("/kernel") else weights[ours]
        np.testing.assert_array_equal(found[theirs], value)


@pytest.mark.parametrize("name, end", ENDS.items())
def test_names_of_each_class_are_read_as_they_are_written(name, end):
    """Read with the prefix that the files have, and the class does not matter."""
    class_name, kind = f"ElectraFor{end}", kinds()[name]
    assert kind_of_architecture(class_name) is kind
    names = tf1_names(kind.model(NezhaConfig.from_dict(config_of("generator"))))
    for ours in names:
        if not ours.startswith(POOLER) or name in ("classification", "multiple_choice"):
            theirs = hugging_face_name(ours, "electra", class_name)
            assert tf1_name_of(theirs, "electra") == ours
            assert tf1_name_of(f"electra.{theirs}", "electra") == ours


def test_what_its_classes_have_not_is_refused(tmp_path):
    write_run(tmp_path / "run", "tagging", TAGGING)
    with pytest.raises(UserError, match="Hugging Face's Electra, which has no pooler") as error:
        convert(tmp_path / "run", tmp_path / "no", "hugging_face")
    assert str(error.value).endswith("--drop=bert/pooler/")
    with pytest.raises(UserError, match="pooler_act 'gelu_erf' has no counterpart in TF1's"):
        convert(tmp_path / "run", tmp_path / "no", "tf1")
    config = NezhaConfig.from_dict({"vocab_size": 9, "pooler_act": "relu"})
    with pytest.raises(UserError, match="'absolute' with pooler_act 'relu' has no counterpart"):
        config.to_hugging_face()


def test_embeddings_of_another_width_than_the_default(tmp_path):
    """Without the key, ELECTRA's class takes 128: the line says what to write."""
    shutil.copy(PEERS["discriminator"] / "model.safetensors", tmp_path)
    values = config_of("discriminator")
    del values["embedding_size"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=r'of width 16, .* put "embedding_size": 16 into it$'):
        open_folder(tmp_path).make_model()


def test_an_encoder_alone(tmp_path):
    """`ElectraModel`, whose names have no prefix."""
    weights = {name.removeprefix("electra."): value for name, value in body().items()}
    save_file(weights, tmp_path / "model.safetensors")
    values = config_of("discriminator", architectures=["ElectraModel"])
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert type(open_folder(tmp_path).make_model()) is NezhaEncoder
