"""The collection of published models: each opens with the right numbers, or says why not."""

import json
import shutil

import numpy as np
import pytest
from conftest import GOLDEN, SHARED
from published_models import MODELS, PREFIXES, REFUSED, body, masked_lm
from safetensors.numpy import save_file

import nezha_tf
from nezha_tf import NezhaConfig, NezhaForPreTraining
from nezha_tf.checkpoints import loading, tf1
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.published import read_config
from nezha_tf.util.errors import UserError

# A BERT-base of 21128 tokens in transformers, whose "gelu" is the exact function.
BASE = {
    "vocab_size": 21128,
    "type_vocab_size": 2,
    "hidden_act": "gelu_erf",
    "position_encoding": "absolute",
}


def written(folder, row):
    """Writes the files of a row, with weights of one number; returns the configuration's path."""
    values = {name: np.ones(1, np.float32) for name in row.names}
    if row.layout == "tf1":
        tf1.write_tensors(folder / "bert_model.ckpt", values)
    else:
        save_file(values, folder / "model.safetensors")
    name = "config.json" if row.layout == "hugging_face" else "bert_config.json"
    (folder / name).write_text(json.dumps(row.values))
    return folder / name


@pytest.mark.parametrize("name", MODELS)
def test_a_published_model_is_read(tmp_path, name):
    """Its configuration as the original reads it; all of its weights under their TF1 names."""
    row = MODELS[name]
    path = written(tmp_path, row)
    is_tf1 = row.layout == "tf1"
    checkpoint = str(tmp_path / "bert_model.ckpt") if is_tf1 else str(tmp_path)
    config, notes = read_config(str(path), checkpoint, is_trained=True)
    assert config == NezhaConfig(**{**BASE, **row.expected})
    assert len(notes) == (1 if row.layout == "pytorch" else 0), notes
    found = loading.open_checkpoint(checkpoint)[1].get_variable_to_shape_map()
    if row.layout != "tf1":  # The table of the output is that of the words, where a file has it.
        assert "cls/predictions/decoder/kernel" not in found
    assert sorted(found) == row.tf1


@pytest.mark.parametrize("name", REFUSED)
def test_another_configuration_is_refused_in_a_line(name):
    values, told = REFUSED[name]
    with pytest.raises(UserError, match=told) as error:
        NezhaConfig.from_dict(values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", PREFIXES)
def test_prefixes_of_wrappers(tmp_path, name):
    prefix, heads = PREFIXES[name]
    expected = MODELS["bert-base-chinese"]
    row = expected._replace(names=[*body(prefix), *masked_lm(heads), f"{heads}fc.weight"])
    written(tmp_path, row)
    found = loading.open_checkpoint(str(tmp_path))[1].get_variable_to_shape_map()
    assert sorted(found) == sorted([*expected.tf1, "fc.weight"])


@pytest.mark.parametrize(
    "names, told",
    [
        (
            [*body("teacher.bert."), *body("student.bert.")],
            "holds several models .student.bert.embeddings.word_embeddings.weight and teacher",
        ),
        ([*body("bert."), *body()], "holds several models .embeddings.* and bert.embeddings.word"),
        (
            [*body("bert."), "bert.embeddings.LayerNorm.gamma"],
            "has bert.embeddings.LayerNorm.gamma and bert.embeddings.LayerNorm.weight, which",
        ),
    ],
)
def test_names_that_mean_two_weights_are_refused(tmp_path, names, told):
    """A model with transformers' own prefix is meant before another one in the same file."""
    row = MODELS["bert-base-chinese"]
    written(tmp_path, row._replace(names=names))
    with pytest.raises(UserError, match=told) as error:
        loading.open_checkpoint(str(tmp_path))
    assert "\n" not in str(error.value)
    written(tmp_path, row._replace(names=[*row.names, *body("teacher.bert.")]))
    found = loading.open_checkpoint(str(tmp_path))[1].get_variable_to_shape_map()
    assert sorted(found) == sorted([*row.tf1, *body("teacher.bert.")])


def test_the_model_in_an_older_folder_of_sentence_transformers(tmp_path):
    """`0_Transformer` has the model, and what pools the vectors lies beside it."""
    shutil.copytree(GOLDEN / "hugging_face_bert", tmp_path / "0_Transformer")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    opened = open_folder(tmp_path)
    assert opened.checkpoint == str(tmp_path / "0_Transformer" / "model.safetensors")
    assert opened.task == {"task": None, "pooling": "mean_all", "max_seq_length": 256}


def test_weights_of_other_programs_are_named(tmp_path):
    (tmp_path / "tf_model.h5").touch()
    with pytest.raises(UserError, match=r"no weights in .*; tf_model.h5 is Keras's, take the same"):
        open_folder(tmp_path)


PUBLISHED = SHARED / "published" / "checkpoints"
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"{PUBLISHED} is missing")


@needs_published
def test_a_real_checkpoint_opens():
    """A small BERT of Google's program, from the tests of CyberZHG/keras-bert."""
    tokenizer, model = nezha_tf.load(PUBLISHED / "keras_bert_test")
    assert type(model) is NezhaForPreTraining and len(tokenizer.vocabulary) == 15


@needs_published
def test_a_real_checkpoint_with_too_long_a_vocabulary():
    """A tagger of PKSHATechnology-Research/camphr: three tokens have no row in its table."""
    pytest.importorskip("torch", reason="its weights are a pickle: pip install -e '.[torch]'")
    with pytest.raises(UserError, match=r"has 405 tokens and the model 402 .*, none for 'Κ' and"):
        nezha_tf.load(PUBLISHED / "camphr_ner_bert")
    assert open_folder(PUBLISHED / "camphr_ner_bert").task["task"] == "tagging"
