"""Serving of models that write texts against what the programs write."""

import numpy as np
import pytest
import tensorflow as tf
from export_folders import (
    INVALID,
    LONG_TEXT,
    NUM_TEXTS,
    ODD_TEXTS,
    Served,
    ask,
    assert_each_row_alone,
    assert_same,
    real_texts,
)
from generation_models import CLS, SEP, random_model, vocabulary_of

from nezha_tf import FullTokenizer
from nezha_tf.data.rows import Row
from nezha_tf.generation import writing
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.sources import Packing, Side
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.generation.writing_format import WritingFormat, format_of
from nezha_tf.tasks.seq2seq.serving import WritingServing
from nezha_tf.text.detokenization import detokenize

COMMON = {
    "task": "seq2seq",
    "max_seq_length": 32,
    "max_source_length": 24,
    "max_target_length": 8,
    "min_target_length": 2,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "beam_size": 4,
    "exempt_words": ["的"],
    "banned_words": ["了"],
}
KINDS = {
    "beam": {
        "target_prediction": "masked",
        "truncate_source": "tail",
        "decoding": "beam",
        "num_return_sequences": 3,
        "length_penalty": 0.7,
        "repetition_penalty": 1.5,
        "no_repeat_ngram_size": 2,
    },
    "sample": {
        "target_prediction": "shift",
        "truncate_source": "head",
        "decoding": "sample",
        "num_return_sequences": 2,
        "length_penalty": 0.0,
        "no_repeat_ngram_size": 0,
        "top_k": 50,
    },
}
TEXTS = [*real_texts()[: NUM_TEXTS // 2], *filter(str.strip, ODD_TEXTS), LONG_TEXT]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    root = tmp_path_factory.mktemp("seq2seq")
    return {name: Served(root / name, {**COMMON, **kind}) for name, kind in KINDS.items()}


def from_python(folder, texts, seed):
    """What run_seq2seq.py would write: a list of `Hypothesis` for each text."""
    task, tokenizer = folder.task, folder.tokenizer
    form = format_of(task, tokenizer)
    packing = Packing(tokenizer, form.source)
    rows = [Row({"src": text}, "", number) for number, text in enumerate(texts)]
    writer = writing.TargetWriter(folder.make_model(), tokenizer, form, len(texts), seed, False)
    return writer(rows, packing.pack(rows))


@pytest.mark.parametrize("name", KINDS)
def test_texts_and_scores_equal_the_program(exports, name, monkeypatch):
    """But for what the Python path takes from the source."""
    monkeypatch.setattr(writing, "detokenize", lambda tokens, *_: detokenize(tokens))
    python = from_python(exports[name].folder, TEXTS, seed=5)
    if name == "sample":
        found = ask(exports[name], "with_seed", text=TEXTS, seed=5 + np.arange(len(TEXTS)))
    else:
        found = ask(exports[name], text=TEXTS)
    assert found["texts"].tolist() == [[h.text for h in row] for row in python]
    for key, values in (("scores", "score"), ("log_probs", "log_prob")):
        expected = [[getattr(hypothesis, values) for hypothesis in row] for row in python]
        np.testing.assert_allclose(found[key], expected, rtol=1e-5, atol=1e-5)
    lengths = {len(text) for text in found["texts"].ravel()}
    assert len(set(found["texts"].ravel())) > 20 and len(lengths) > 3


@pytest.mark.parametrize("name", KINDS)
def test_a_row_does_not_depend_on_its_batch(exports, name):
    texts = [TEXTS[0], INVALID, "", LONG_TEXT, TEXTS[1]]
    assert_each_row_alone(exports[name], {"text": texts}, range(len(texts)))
    # What is no UTF-8 is left out.
    texts = [INVALID, INVALID.decode("utf-8", "ignore")]
    assert_same(*ask(exports[name], text=texts)["texts"])


def test_seeds(exports):
    ask_for = {"text": [TEXTS[0]] * 4, "seed": [0, 1, 0, 2]}
    rows = ask(exports["sample"], "with_seed", **ask_for)["texts"].tolist()
    assert rows[0] == rows[2] == ask(exports["sample"], text=TEXTS[:1])["texts"][0].tolist()
    assert len({tuple(row) for row in rows}) == 3
    tokenizer = exports["sample"].folder.tokenizer
    tokens = ["[CLS]", *tokenizer.tokenize(TEXTS[0])[-22:], "[SEP]"]
    ids = np.array([tokenizer.convert_tokens_to_ids(tokens)] * 4)
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "seed": ask_for["seed"]}
    found = ask(exports["sample"], "from_ids", **inputs)
    by_text = ask(exports["sample"], "with_seed", **ask_for)
    np.testing.assert_allclose(found["log_probs"], by_text["log_probs"], rtol=1e-5)


def test_ids_that_are_padded_anyhow(exports):
    """Longer padding than there need be, and the tokens are those of the texts."""
    tokenizer, texts = exports["beam"].folder.tokenizer, TEXTS[:4]
    rows = [["[CLS]", *tokenizer.tokenize(text)[:22], "[SEP]"] for text in texts]
    ids = np.zeros((len(rows), 30), int)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokenizer.convert_tokens_to_ids(tokens)
    mask = np.arange(30) < np.array([[len(tokens)] for tokens in rows])
    found = ask(exports["beam"], "from_ids", input_ids=ids, input_mask=mask.astype(int))
    by_text = ask(exports["beam"], text=texts)
    np.testing.assert_allclose(found["scores"], by_text["scores"], rtol=1e-5)
    for tokens, lengths, written in zip(
        found["ids"], found["lengths"], by_text["texts"], strict=True
    ):
        for row, length, text in zip(tokens, lengths, written, strict=True):
            assert not row[length:].any()
            assert detokenize(tokenizer.convert_ids_to_tokens(row[:length])) == text


def test_ids_past_the_table_of_positions_are_told(exports):
    """40 absolute positions, of which a target takes 6; relative ones have no bound."""
    tokenizer = FullTokenizer(vocabulary=vocabulary_of(30))
    options = GenerationOptions(method="greedy", max_length=6)
    source = Side("source", 2, 20, "tail")
    serving = WritingServing(
        random_model("absolute"), tokenizer, WritingFormat(source, TargetFormat(), options)
    )
    served = serving.signatures()["from_ids"]
    ids = tf.constant([[CLS, *[7] * 32, SEP, 0, 0, 0], [CLS, *[8] * 34, SEP, 0]])
    lengths = np.array([[34], [36]])
    mask = tf.constant(np.arange(37) < lengths, tf.int32)
    assert served(input_ids=ids[:1], input_mask=mask[:1])["ids"].shape == (1, 1, 6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a source has more than 34 tokens"):
        served(input_ids=ids, input_mask=mask)
    assert exports["beam"]["from_ids"](input_ids=ids, input_mask=mask)["ids"].shape[0] == 2
