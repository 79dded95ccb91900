"""Serving of classification against what the programs predict."""

import json

import numpy as np
import pytest
import tensorflow as tf
from export_folders import (
    INVALID,
    LONG_TEXT,
    ODD_TEXTS,
    Served,
    ask,
    assert_each_row_alone,
    assert_same,
    real_texts,
    write_folder,
)

from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.serving.export import export
from nezha_tf.serving.settings import ExportSettings
from nezha_tf.tasks.classification.labels import LABEL_TYPES
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.util.errors import UserError

LENGTH = 24
LABELS = ["差评", "好评", "中评"]
SETTINGS = {"task": "classification", "max_seq_length": LENGTH, "labels": LABELS}
KINDS = {
    "single": {"label_type": "single", "is_pair": False},
    "pair": {"label_type": "multi", "is_pair": True, "labels": list("甲乙丙丁戊己庚辛")},
    "number": {"label_type": "regression", "is_pair": False, "labels": []},
}
TEXTS = [*real_texts(), *ODD_TEXTS, LONG_TEXT]
# Shorter and longer than the text that they stand beside.
OTHERS = [text[: 3 * number] for number, text in enumerate(reversed(TEXTS))]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root = tmp_path_factory.mktemp("classification")
    return {name: Served(root / name, {**SETTINGS, **kind}) for name, kind in KINDS.items()}


def test_a_text_waits_for_one_operation_a_kernel(exports):
    """A product of each kernel as it is: nothing is put together or turned for a text."""
    graph = exports["single"]["from_ids"].get_concrete_function().graph
    products = [operation for operation in graph.get_operations() if operation.type == "MatMul"]
    config = exports["single"].folder.config
    # Six a layer; segments, the pooler and the head, whose small table is turned.
    assert len(products) == 6 * config.num_hidden_layers + 3
    sources = {product.inputs[1].op.type for product in products[:-1]}
    assert sources == {"ReadVariableOp"}
    assert "Prod" not in {operation.type for operation in graph.get_operations()}  # tf.tensordot


def inputs_of(name, texts=TEXTS, others=OTHERS):
    return {"text": texts, "text_pair": others} if name == "pair" else {"text": texts}


def packed(tokenizer, texts, others=None):
    """Returns the ids and segments of texts, packed by hand."""
    arrays = {"input_ids": [], "segment_ids": []}
    for row in zip(*filter(None, (texts, others)), strict=True):
        sides = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in row]
        while sum(map(len, sides)) > LENGTH - 1 - len(sides):
            max(reversed(sides), key=len).pop()
        sides = [[*side, tokenizer.vocabulary.sep_id] for side in sides]
        sides[0].insert(0, tokenizer.vocabulary.cls_id)
        arrays["input_ids"].append(np.concatenate(sides))
        arrays["segment_ids"].append(np.repeat(range(len(sides)), list(map(len, sides))))
    return arrays


def expected(export, name, texts, others):
    folder = export.folder
    arrays = packed(folder.tokenizer, texts, others if name == "pair" else None)
    objective = LABEL_TYPES[KINDS[name]["label_type"]].objective()
    return predict(folder.make_model(), objective, ArrayReader(arrays, LENGTH), 32, False)


@pytest.mark.parametrize("name", KINDS)
def test_outputs_equal_the_program(exports, name):
    found = ask(exports[name], **inputs_of(name))
    python = expected(exports[name], name, TEXTS, OTHERS)
    for key, values in python.items():
        np.testing.assert_allclose(found[key], np.stack(values), atol=1e-5)
    if name == "single":
        best = np.argmax(np.stack(python["probabilities"]), axis=-1)
        assert found["label"].tolist() == [LABELS[index] for index in best]
        assert len(set(best)) > 1
        np.testing.assert_allclose(found["probability"], found["probabilities"].max(axis=-1))
        assert ask(exports[name], "labels")["labels"].tolist() == LABELS
    if name == "pair":
        assert (found["labels_on"] == (np.stack(python["probabilities"]) >= 0.5)).all()
        assert 0 < found["labels_on"].mean() < 1


@pytest.mark.parametrize("name", ("single", "pair"))
def test_one_by_one_no_text_and_no_utf_8(exports, name):
    assert_each_row_alone(exports[name], inputs_of(name), range(len(TEXTS) - 9, len(TEXTS)))
    # What is no UTF-8 becomes U+FFFD, which the tokenizer drops.
    texts = [INVALID, INVALID.decode("utf-8", "ignore")]
    assert_same(*ask(exports[name], **inputs_of(name, texts, ["", ""]))["probabilities"])


def test_ids_are_those_of_the_program(exports):
    arrays = packed(exports["pair"].folder.tokenizer, TEXTS, OTHERS)
    batch = {
        "input_ids": tf.ragged.constant([ids.tolist() for ids in arrays["input_ids"]]),
        "segment_ids": tf.ragged.constant([ids.tolist() for ids in arrays["segment_ids"]]),
    }
    batch["input_mask"] = tf.ones_like(batch["input_ids"])
    found = ask(exports["pair"], "from_ids", **{n: v.to_tensor() for n, v in batch.items()})
    by_text = ask(exports["pair"], **inputs_of("pair"))
    np.testing.assert_allclose(found["probabilities"], by_text["probabilities"], atol=1e-6)


def test_mistakes_are_one_line(exports, tmp_path):
    write_folder(tmp_path / "model", {**SETTINGS, **KINDS["single"]})
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    settings = json.loads((tmp_path / "model" / "task.json").read_text())

    def mistake(message, model="model", output="export"):
        paths = {"model_folder": str(tmp_path / model), "output_dir": str(tmp_path / output)}
        with pytest.raises(UserError, match=message) as error:
            export(ExportSettings(**paths))
        assert len(str(error.value).splitlines()) == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "model", "there"]

    mistake("there exists already", output="there")
    mistake("file/export", output="file/export")
    mistake("no model in .*nowhere", model="nowhere")
    (tmp_path / "model" / "task.json").write_text(json.dumps({**settings, "labels": ["a"]}))
    mistake(r"output_weights has shape \[3, 16\], and the model's is \[1, 16\]")
