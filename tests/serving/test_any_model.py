"""Serving of features and of filling blanks against what the tools find."""

import json
from pathlib import Path

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

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.checkpoints.tf1 import write_tensors
from nezha_tf.data.rows import Row
from nezha_tf.serving.export import serving_of
from nezha_tf.tasks.sentence_vectors.vectors import make_step, pack
from nezha_tf.util.errors import UserError

LENGTH = 40
SETTINGS = {"task": "pretraining", "max_seq_length": LENGTH, "objectives": "bidirectional"}
TEXTS = [*real_texts(), *ODD_TEXTS, LONG_TEXT]
# No, one and several blanks; side by side, at the ends, alone; written otherwise.
BLANKS = [
    "",
    "[MASK]",
    "[MASK][MASK]a[MASK]",
    "今天[MASK]气",
    "[MASK]好 [mask] [ MASK]",
    "CAFÉ[MASK]e\u0301",
]


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return Served(tmp_path_factory.mktemp("any") / "model", SETTINGS, "features")


@pytest.fixture(scope="module")
def opened(features):
    return features.folder


@pytest.fixture(scope="module")
def fill(opened):
    return serving_of(opened)[1].signatures()


def test_vectors_equal_the_program(features, opened):
    found = ask(features, text=TEXTS)
    of_tokens = ask(features, "tokens", text=TEXTS)
    tokenizer, encoder = opened.tokenizer, opened.make_model().encoder
    steps = {n: make_step(encoder, [1], n) for n in ("mean", "max", "cls", "pooler", None)}
    for row, text in enumerate(TEXTS):
        if not tokenizer.tokenize(text):
            assert not found["mean"][row].any() and not found["max"][row].any()
            assert of_tokens["num_tokens"][row] == 2
            continue
        packed = pack([Row({"text": text}, 1, "")], tokenizer, LENGTH)
        arrays = {**packed.arrays, "input_mask": [np.ones_like(packed.ids[0])]}
        # All to one length, so that the steps are traced once.
        missing = LENGTH - len(packed.ids[0])
        arrays = {name: tf.constant(np.pad(v[0], (0, missing))[None]) for name, v in arrays.items()}
        for name, step in steps.items():
            vectors = step(arrays)[0].numpy()
            if name:
                np.testing.assert_allclose(found[name][row], vectors, atol=1e-5)
        count = of_tokens["num_tokens"][row]
        np.testing.assert_allclose(of_tokens["vectors"][row][:count], vectors[:count], atol=1e-5)
        names = tokenizer.vocabulary.tokens_of(packed.ids[0])
        assert of_tokens["token"][row].tolist()[:count] == names
        spans = np.stack([of_tokens["start"][row], of_tokens["end"][row]], axis=1)
        assert spans[1 : count - 1].tolist() == packed.spans[0].tolist()
        assert (np.delete(spans, range(1, count - 1), axis=0) == -1).all()
        assert not of_tokens["vectors"][row][count:].any()


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_tokens_of_the_golden_strings_are_the_originals(shared_golden, tmp_path, do_lower_case):
    cases = json.loads((shared_golden / "tokenization.json").read_text(encoding="utf-8"))
    cases = [case for case in cases if case["do_lower_case"] == do_lower_case]
    settings = {**SETTINGS, "max_seq_length": 512, "do_lower_case": do_lower_case}
    export = Served(tmp_path / "model", settings, "features", shared_golden / "vocab.txt")
    found = ask(export, "tokens", text=[case["text"] for case in cases])
    assert len(cases) == 70
    for case, tokens, count in zip(cases, found["token"], found["num_tokens"], strict=True):
        assert tokens[1 : count - 1].tolist() == case["tokens"]


def test_features_one_by_one_no_text_no_utf_8_and_from_ids(features, opened):
    assert_each_row_alone(features, {"text": TEXTS}, range(len(TEXTS) - 7, len(TEXTS)))
    assert ask(features, "tokens", text=[])["vectors"].shape[0] == 0
    first, second = ask(features, text=[INVALID, INVALID.decode("utf-8", "ignore")])["mean"]
    assert_same(first, second)
    packed = pack([Row({"text": TEXTS[0]}, 1, "")], opened.tokenizer, LENGTH)
    ids = {n: packed.arrays[n] for n in ("input_ids", "segment_ids")}
    ids["input_mask"] = [np.ones_like(packed.ids[0])]
    together = ask(features, text=TEXTS[:1])
    for name, values in ask(features, "from_ids", **ids).items():
        assert_same(values, together[name])


def with_blanks():
    """Returns texts with blanks that are not cut."""
    return BLANKS + [f"{text[:6]}[MASK]{text[6:14]}[MASK]{text[14:20]}" for text in TEXTS]


def test_candidates_are_those_of_the_models_logits(fill, opened):
    """Of each text by itself, tokenized in Python."""
    model, tokenizer = opened.make_model(), opened.tokenizer
    vocabulary = tokenizer.vocabulary

    def filler(text):
        parts = [vocabulary.ids_of(tokenizer.tokenize(part)) for part in text.split("[MASK]")]
        ids = [vocabulary.cls_id, *parts[0]]
        for part in parts[1:]:
            ids += [vocabulary.mask_id, *part]
        ids = np.array([[*ids, vocabulary.sep_id]])
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
        inputs["segment_ids"] = np.zeros_like(ids)
        blanks = np.flatnonzero(ids[0] == vocabulary.mask_id)[None]
        logits = model({**inputs, "masked_lm_positions": blanks})["masked_lm_logits"][0]
        shares = tf.nn.softmax(logits).numpy()
        best = np.argsort(-shares)[:, :10]
        return [
            [(vocabulary.tokens[token], row[token]) for token in tokens]
            for row, tokens in zip(shares, best, strict=True)
        ]

    texts = with_blanks()
    found = ask(fill, text=texts)
    for row, text in enumerate(texts):
        expected = filler(text) if "[MASK]" in text else []
        count = found["num_masks"][row]
        assert count == len(expected)
        assert found["candidates"][row][:count].tolist() == [
            [token for token, _ in candidates] for candidates in expected
        ]
        for place, candidates in enumerate(expected):
            probabilities = [probability for _, probability in candidates]
            np.testing.assert_allclose(found["probabilities"][row][place], probabilities, atol=1e-5)
        assert set(found["candidates"][row][count:].ravel()) <= {""}
        assert not found["probabilities"][row][count:].any()


def test_blanks_one_by_one_none_at_all_and_behind_the_cut(fill):
    texts = with_blanks()
    assert_each_row_alone(fill, {"text": texts}, (1, 2, 3, len(texts) - 1))
    none = ask(fill, text=["", INVALID, LONG_TEXT])
    assert none["num_masks"].tolist() == [0, 0, 0]
    cut = "中" * (LENGTH - 4)
    found = ask(fill, text=[f"{cut}[MASK]中[MASK]", f"{LONG_TEXT}[MASK]"])
    assert found["num_masks"].tolist() == [1, 0]
    batch = {"input_ids": [[2, 4, 3]], "input_mask": [[1, 1, 1]], "segment_ids": [[0, 0, 0]]}
    assert set(ask(fill, "from_ids", **batch)) == set(found)


def test_what_a_model_lacks(features, tmp_path):
    """A classifier fills no blanks; where there is no pooler, nothing is given out for it."""
    labels = {"label_type": "single", "labels": ["a", "b"], "is_pair": False}
    write_folder(tmp_path / "other", {"task": "classification", "max_seq_length": 9, **labels})
    with pytest.raises(UserError, match="has no head of masked LM"):
        serving_of(open_folder(tmp_path / "other"), "fill_mask")
    reader = tf.train.load_checkpoint(features.folder.checkpoint)
    names = [n for n in reader.get_variable_to_shape_map() if not n.startswith("bert/pooler/")]
    (tmp_path / "published").mkdir()
    for name in ("bert_config.json", "vocab.txt"):
        (tmp_path / "published" / name).write_bytes(
            (Path(features.folder.path) / name).read_bytes()
        )
    write_tensors(tmp_path / "published" / "model.ckpt", {n: reader.get_tensor(n) for n in names})
    serving = serving_of(open_folder(tmp_path / "published"), "features")[1]
    found, whole = ask(serving.signatures(), text=["今天"]), ask(features, text=["今天"])
    assert set(whole) - set(found) == {"pooler"}
    for name, values in found.items():
        np.testing.assert_allclose(values, whole[name], atol=1e-6)
