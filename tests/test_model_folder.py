"""Published folders opened in one line, and what may be wrong with a folder."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import GOLDEN
from helpers import golden_batch

import nezha_tf
from nezha_tf import NezhaEncoder, NezhaForMaskedLM, NezhaForPreTraining, checkpoints
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.errors import UserError
from nezha_tf.model_folder import open_folder
from nezha_tf.text.vocabulary import SPECIAL_PIECES

SETTINGS = {
    "task": "pretraining",
    "do_lower_case": False,
    "max_seq_length": 32,
    "uses_averages": False,
    "objectives": "bidirectional",
}


def write_vocabulary(folder, count):
    pieces = [*SPECIAL_PIECES, "ab", "AB"]
    pieces += [chr(0x4E00 + number) for number in range(count - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


@pytest.fixture
def published(tmp_path):
    """A folder as Google published them."""
    source = GOLDEN / "nezha_tiny"
    shutil.copy(source / "bert_config.json", tmp_path)
    for path in source.glob("model.ckpt.*"):
        shutil.copy(path, tmp_path / path.name.replace("model.ckpt", "bert_model.ckpt"))
    write_vocabulary(tmp_path, 211)
    return tmp_path


def test_a_published_folder_is_a_tokenizer_and_a_model(published, golden):
    tokenizer, model = nezha_tf.load(published)
    assert isinstance(model, NezhaForPreTraining)
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize("AB一")) == [5, 7]
    figures = golden("nezha_tiny/forward")
    outputs = model(golden_batch(figures))
    for name in ("pooled_output", "sequence_output"):
        np.testing.assert_allclose(outputs[name], figures[f"out.{name}"], atol=2e-5)
    opened = open_folder(published)
    assert opened.task == {"task": None} and opened.do_lower_case
    cased = open_folder(published, do_lower_case=False).tokenizer
    assert cased.convert_tokens_to_ids(cased.tokenize("AB一")) == [6, 7]


@pytest.mark.parametrize("kind", ("bert", "nezha"))
def test_a_folder_of_hugging_face_is_one_too(tmp_path, kind):
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN / f"hugging_face_{kind}", folder)
    write_vocabulary(folder, 20)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer, model = nezha_tf.load(folder)
    assert isinstance(model, NezhaForPreTraining) and not tokenizer.do_lower_case
    with np.load(folder / "forward.npz") as figures:
        inputs = {
            "input_ids": figures["in.input_ids"],
            "input_mask": figures["in.attention_mask"],
            "segment_ids": figures["in.token_type_ids"],
            "masked_lm_positions": np.zeros((len(figures["in.input_ids"]), 1), int),
        }
        outputs = model(inputs)
        np.testing.assert_allclose(outputs["pooled_output"], figures["pooled_output"], atol=1e-5)


@pytest.mark.parametrize(
    ("lacking", "kind"),
    (
        (("cls/seq_relationship/", "bert/pooler/"), NezhaForMaskedLM),
        (("cls/predictions/output_bias",), NezhaEncoder),
    ),
)
def test_without_all_heads_it_is_the_model_of_those_it_has(published, lacking, kind):
    reader = tf.train.load_checkpoint(str(published / "bert_model.ckpt"))
    names = [name for name in reader.get_variable_to_shape_map() if not name.startswith(lacking)]
    write_tensors(published / "bert_model.ckpt", {name: reader.get_tensor(name) for name in names})
    _, model = nezha_tf.load(published)
    assert type(model) is kind
    for name, variable in tf1_names(model).items():
        if not name.startswith(lacking):
            np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name))


def test_the_checkpoint_is_the_best_one_or_the_newest(published):
    model = NezhaForPreTraining(open_folder(published).config)
    for step in (2, 10, 9):
        checkpoints.save_tf1_checkpoint(model, published / f"model.ckpt-{step}")
    assert open_folder(published).checkpoint == str(published / "model.ckpt-10")
    best = published / "best_checkpoint.json"
    for text, step in (
        ('{"global_step": 2, "f1": 0.5}', 2),
        ('{"global_step": 3, "f1": 0.5}', 10),  # which is not kept
        ("[]", 10),
    ):
        best.write_text(text)
        assert open_folder(published).checkpoint == str(published / f"model.ckpt-{step}")


def test_what_is_wrong_with_a_folder_is_one_line(published, tmp_path_factory):
    def breaks(message, change):
        folder = tmp_path_factory.mktemp("broken")
        shutil.copytree(published, folder, dirs_exist_ok=True)
        change(folder)
        with pytest.raises(UserError) as error:
            nezha_tf.load(folder)
        assert message in str(error.value) and str(folder) in str(error.value)
        assert len(str(error.value).splitlines()) == 1

    breaks("it is not there", lambda folder: shutil.rmtree(folder))
    breaks("no vocab.txt in", lambda folder: (folder / "vocab.txt").unlink())
    breaks("has 212 pieces and the model 211", lambda folder: write_vocabulary(folder, 212))
    breaks("no bert_config.json or", lambda folder: (folder / "bert_config.json").unlink())
    breaks("no weights in", lambda folder: (folder / "bert_model.ckpt.index").unlink())
    data = "bert_model.ckpt.data-00000-of-00001"
    breaks("is damaged at", lambda folder: (folder / data).write_bytes(b""))
    other = "nezha_model.ckpt.index"
    breaks(other, lambda folder: shutil.copy(folder / "bert_model.ckpt.index", folder / other))
    odd = '{"do_lower_case": "no"}'
    breaks("must be true or f", lambda f: (f / "tokenizer_config.json").write_text(odd))
    with pytest.raises(UserError, match="it is a file; give the folder"):
        nezha_tf.load(published / "vocab.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ({"task": "parsing"}, "task must be one of pretraining, "),
        ({"task": ["seq2seq"]}, "task must be one of pretraining, "),
        ({"max_seq_length": 32.0}, "max_seq_length must be a whole number of at least 1, not 32.0"),
        ({"max_seq_length": True}, "max_seq_length must be"),
        ({"do_lower_case": None}, "do_lower_case must be true or false, not null"),
        ({"task": "tagging"}, "lacks 'labels'"),
        (
            {
                "task": "classification",
                "label_type": "single",
                "is_pair": False,
                "labels": ["a"] * 2,
            },
            'labels must be a list of different texts, not ["a", "a"]',
        ),
    ),
)
def test_a_damaged_task_file_is_one_line(published, text, message):
    path = published / "task.json"
    path.write_text(text if isinstance(text, str) else json.dumps({**SETTINGS, **text}))
    with pytest.raises(UserError) as error:
        open_folder(published)
    assert message in str(error.value) and str(path) in str(error.value)
    assert len(str(error.value).splitlines()) == 1
