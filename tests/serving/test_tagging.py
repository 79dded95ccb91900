"""Serving of tagging against what the programs predict."""

from types import SimpleNamespace

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
    real_texts,
)

from nezha_tf.data.entity_files import Sentence
from nezha_tf.data.entity_tags import TagSet
from nezha_tf.data.in_memory import ArrayReader
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.finetuning.evaluation import predict
from nezha_tf.tasks.tagging.data import WindowedSentences, units_of
from nezha_tf.tasks.tagging.loss import CrfTaggingLoss, TaggingLoss
from nezha_tf.tasks.tagging.serving import TaggingServing

LENGTH = 32
KINDS = {"chain": ("BIO", True, 7), "single": ("BMES", False, 30), "short": ("BIOS", False, 30)}
# From a window short of one token to several windows of which the last is moved.
ROWS = ["中" * count for count in (1, 29, 30, 31, 36, 37, 38, 60, 61)]
TEXTS = [*real_texts(), *ODD_TEXTS, *ROWS, ""]
SENTENCES = [Sentence(text, None) for text in TEXTS]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root, found = tmp_path_factory.mktemp("tagging"), {}
    for name, (scheme, crf, stride) in KINDS.items():
        settings = {
            "task": "tagging",
            "max_seq_length": LENGTH,
            "labels": TagSet.of_labels({"PER", "LOC"}, scheme).tags,
            "scheme": scheme,
            "crf": crf,
            "window_stride": stride,
        }
        found[name] = Served(root / name, settings)
    return found


def entities_in(found, row):
    """Returns a row of an export's entities; asserts that nothing stands behind them."""
    count = found["num_entities"][row]
    empty = {"label": "", "start": -1, "end": -1, "entity": "", "probability": 0}
    for name, value in empty.items():
        assert set(found[name][row][count:]) <= {value}
    return [tuple(found[name][row][i] for name in empty) for i in range(count)]


@pytest.mark.parametrize("name", KINDS)
def test_entities_equal_the_program(exports, name):
    _, crf, stride = KINDS[name]
    folder = exports[name].folder
    examples = WindowedSentences(
        SENTENCES, TextReader(folder.tokenizer), TagSet(folder.task["labels"]), LENGTH, stride
    )
    objective = CrfTaggingLoss() if crf else TaggingLoss()
    reader = ArrayReader(examples.arrays, LENGTH)
    python = examples.entities(predict(folder.make_model(), objective, reader, 32, False))
    found = ask(exports[name], text=TEXTS)
    total = 0
    for row, (text, expected) in enumerate(zip(TEXTS, python, strict=True)):
        entities = entities_in(found, row)
        assert [e[:4] for e in entities] == [
            (e.label, e.start, e.end, text[e.start : e.end]) for e in expected
        ]
        np.testing.assert_allclose(
            [e[4] for e in entities], [e.probability for e in expected], atol=1e-5
        )
        total += len(expected)
    assert total > len(TEXTS)


def test_one_by_one_no_text_no_utf_8_and_a_very_long_one(exports):
    assert_each_row_alone(exports["chain"], {"text": TEXTS}, range(len(TEXTS) - 9, len(TEXTS)))
    replaced = b"\xff\xe4\xbd", INVALID
    found = ask(exports["single"], text=[*replaced, LONG_TEXT])
    assert found["num_entities"][0] == 0 and found["num_entities"][2] > 1000
    for _, start, end, entity, _ in entities_in(found, 2):
        assert LONG_TEXT[start:end] == entity


def test_ids_give_the_tag_of_each_token(exports):
    tokenizer = exports["single"].folder.tokenizer
    text = next(text for text in TEXTS if len(text) == 29)
    ids = [2, *tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)), 3]
    ids[0], ids[-1] = tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id
    inputs = {"input_ids": [ids], "input_mask": [[1] * len(ids)], "segment_ids": [[0] * len(ids)]}
    found = ask(exports["single"], "from_ids", **inputs)
    tags = TagSet(TagSet.of_labels({"PER", "LOC"}, "BMES").tags)
    entities = tags.entities_of([tags.tags.index(tag) for tag in found["tag"][0][1:-1]])
    by_text = entities_in(ask(exports["single"], text=[text]), 0)
    assert [(e.label, e.start, e.end) for e in entities] == [e[:3] for e in by_text]
    assert found["tag"][0][0] == found["tag"][0][-1] == "" and found["probability"][0][1] > 0


@pytest.mark.parametrize(
    "labels", [["B", "I"], ["[PAD]", "O", "B-A", "I-A"], ["O", "PER", "LOC"], ["B", "M", "E", "S"]]
)
def test_the_graph_reads_published_labels_as_python_does(labels):
    """Texts of 0 to 8 characters, each a token."""
    rng = np.random.default_rng(len(labels))
    lengths = [0, 1, 8, 5, 3, 7]
    ids = [rng.integers(0, len(labels), length) for length in lengths]
    places = tf.ragged.range(tf.constant(lengths))
    tokens = SimpleNamespace(
        ids=places,
        starts=places,
        ends=places + 1,
        characters=tf.ragged.constant([["中"] * length for length in lengths], tf.string),
    )
    serving = object.__new__(TaggingServing)
    serving._tag_set = tag_set = TagSet.of_model(labels, "config.json")
    units, _ = units_of(tokens)
    all_ids = tf.constant(np.concatenate(ids), tf.int32)
    found = serving._entities(tokens, units, all_ids, tf.ones(len(all_ids)))
    expected = [tag_set.entities_of(row) for row in ids]
    assert sum(map(len, expected)) > 3
    for row, entities in enumerate(expected):
        assert found["num_entities"][row] == len(entities)
        for place, (start, end, label) in enumerate(entities):
            assert found["label"][row, place].numpy().decode() == label
            assert (found["start"][row, place], found["end"][row, place]) == (start, end)
