"""Sentence vectors: the loss by hand, a toy training, what is evaluated and exported, mistakes."""

import itertools
import json
import re

import keras
import numpy as np
import pytest
from commands import QUICK_CONFIG
from export_folders import ask
from helpers import rows_of, write_model_files, write_rows

from nezha_tf import NezhaConfig, NezhaEncoder, checkpoints
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.modeling.sentence_vectors import NezhaForSentenceVectors
from nezha_tf.serving.export import serving_of
from nezha_tf.tasks.sentence_vectors.extract import extract_features
from nezha_tf.tasks.sentence_vectors.extract_settings import ExtractSettings
from nezha_tf.tasks.sentence_vectors.loss import ContrastiveLoss
from nezha_tf.tasks.sentence_vectors.settings import SentenceVectorSettings
from nezha_tf.tasks.sentence_vectors.task import SentenceVectors
from nezha_tf.training.run import run as start
from nezha_tf.util.errors import UserError

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"甲乙丙丁戊己庚辛"]
# Large weights, so that a vector depends on its text from the start.
CONFIG = {
    **QUICK_CONFIG,
    "vocab_size": len(TOKENS),
    "hidden_dropout_prob": 0.02,
    "initializer_range": 0.5,
}


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    "pooling, index", (("cls", [7, 2, 5]), ("mean", [7, 2, 7]), ("cls", [4, 4, 4]))
)
def test_the_loss_by_hand(pooling, index):
    """A text that the batch has twice is compared with all texts but its copy."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(6, 5, 4)).astype(np.float32)
    lengths = np.array([5, 5, 3, 3, 4, 4])
    outputs = {
        "sequence_output": states,
        "pooled_output": rng.normal(size=(6, 4)).astype(np.float32),
        "input_mask": (np.arange(5) < lengths[:, None]).astype(np.int32),
    }
    batch = {
        "input_mask": outputs["input_mask"][::2],
        "example_index": np.array(index, np.int32),
    }
    means = np.stack([row[1 : n - 1].mean(0) for row, n in zip(states, lengths, strict=True)])
    vectors = unit(outputs["pooled_output"] if pooling == "cls" else means)
    cosines = vectors[::2] @ vectors[1::2].T / 0.05
    for i, j in itertools.permutations(range(3), 2):
        if index[i] == index[j]:
            cosines[i, j] = -np.inf
    expected = [np.log(np.exp(row).sum()) - row[i] for i, row in enumerate(cosines)]
    loss = ContrastiveLoss(0.05, pooling)
    (mean,) = loss.losses(outputs, batch).values()
    assert float(mean.weight) == 3 and float(mean.sum) == pytest.approx(
        sum(expected), rel=1e-4, abs=1e-6
    )
    (accuracy,) = loss.metrics(outputs, batch).values()
    assert float(accuracy.sum) == (cosines.argmax(1) == np.arange(3)).sum()
    vectors = unit(states[:, 0] if pooling == "cls" else means)
    found = loss.predictions(outputs)["similarity"]
    np.testing.assert_allclose(found, (vectors[::2] * vectors[1::2]).sum(-1), rtol=1e-4)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    write_model_files(folder, TOKENS, CONFIG)
    keras.utils.set_random_seed(0)
    model = NezhaEncoder(NezhaConfig.from_dict(CONFIG))
    checkpoints.save_tf1_checkpoint(model, str(folder / "model.ckpt-1"))
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice([*"甲乙丙丁戊己庚辛"], rng.integers(4, 12))) for _ in range(200)]
    (folder / "texts.txt").write_text("".join(f"{text}\n\n" for text in texts))
    pairs = []
    for first, second in zip(texts[:40], texts[40:80], strict=True):
        shared = len({*first} & {*second}) / len({*first} | {*second})
        pairs.append({"sentence1": first, "sentence2": second, "label": shared})
    write_rows(folder / "pairs.jsonl", *pairs)
    return folder


@pytest.fixture
def settings(data, tmp_path):
    common = {
        "train_file": str(data / "texts.txt"),
        "eval_file": str(data / "pairs.jsonl"),
        "predict_file": str(data / "pairs.jsonl"),
        "text_column": "sentence1",
        "text_pair_column": "sentence2",
        "vocab_file": str(data / "vocab.txt"),
        "bert_config_file": str(data / "config.json"),
        "init_checkpoint": str(data / "model.ckpt-1"),
        "output_dir": str(tmp_path / "run"),
        "max_seq_length": 16,
        "train_batch_size": 40,
        "learning_rate": 3e-3,
        "num_train_epochs": 6.0,
        "save_checkpoints_steps": 1000,  # once, at the end
        "jit_compile": False,
    }
    return lambda **changes: SentenceVectorSettings(**{**common, **changes})


def test_texts_come_to_be_nearest_to_themselves(settings, data, tmp_path):
    """What is evaluated is the correlation that extract_features tells."""
    modes = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    start(settings(pooling="cls", **modes), SentenceVectors)
    folder = tmp_path / "run"
    losses = losses_of(folder)
    assert losses[-1] < 0.7 * np.log(40)  # that of random vectors
    results = json.loads((folder / "eval_results.json").read_text())
    opened = open_folder(folder)
    assert type(opened.make_model()) is NezhaForSentenceVectors
    assert opened.task["pooling"] == "cls"
    _, said = assert_extracted_as_predicted(folder, data)
    assert said.endswith(f"Spearman correlation with the labels {results['spearman']:.4f}")


def losses_of(folder):
    return [row["loss"] for row in rows_of(folder / "metrics.jsonl") if "loss" in row]


def assert_extracted_as_predicted(folder, data):
    """Returns the rows that extract_features writes for a run's pairs, and what it says."""
    way = {"model_folder": str(folder), "input_file": str(data / "pairs.jsonl")}
    columns = {"text_column": "sentence1", "text_pair_column": "sentence2", "label_column": "label"}
    way |= {"output_file": str(folder.with_name("similarity.jsonl")), "similarity": True}
    said = extract_features(ExtractSettings(**way, **columns))
    rows = rows_of(folder.with_name("similarity.jsonl"))
    for row, line in zip(rows, rows_of(folder / "predictions.jsonl"), strict=True):
        assert row["similarity"] == pytest.approx(line["similarity"], abs=1e-5)
    return rows, said


def assert_exported_as_predicted(folder, rows):
    export = serving_of(open_folder(folder))[1].signatures()
    vectors = [ask(export, text=[row[c] for row in rows])["mean"] for c in ("text", "text_pair")]
    cosines = (unit(vectors[0]) * unit(vectors[1])).sum(-1)
    np.testing.assert_allclose(cosines, [row["similarity"] for row in rows], atol=1e-5)
    # The mean of the vectors that the export gives for the tokens.
    tokens = ask(export, "tokens", text=[row["text"] for row in rows])
    for found, count, mean in zip(tokens["vectors"], tokens["num_tokens"], vectors[0], strict=True):
        np.testing.assert_allclose(found[1 : count - 1].mean(0), mean, atol=1e-5)


def test_vectors_of_a_mixture_are_those_of_the_training(settings, data, tmp_path):
    modes = {"do_train": True, "do_predict": True, "num_train_steps": 1}
    start(settings(pooling="mean", layer_mix=True, **modes), SentenceVectors)
    rows, _ = assert_extracted_as_predicted(tmp_path / "run", data)
    assert_exported_as_predicted(tmp_path / "run", rows)


def test_bad_rows_are_told_or_counted(settings, tmp_path):
    (tmp_path / "texts.txt").write_text("甲乙\n\ufffd\n丙\n\u200b\n\n")
    pairs = tmp_path / "pairs.jsonl"
    for part, row, message, note in (
        ("train", {}, ".* has no tokens", r"2 texts; bad rows skipped: 1 .*passed over: 2 \(the f"),
        ("eval", {"sentence2": "\u200b"}, ".* has no tokens", "1 pair; bad rows skipped: 1"),
        ("eval", {"label": "nan"}, "label nan is not", "1 pair; bad rows skipped: 1"),
        ("eval", {"label": "1e39"}, "label 1e39 is too", "1 pair; bad rows skipped: 1"),
    ):
        good = {"sentence1": "甲", "sentence2": "乙", "label": 1}
        write_rows(pairs, good, {**good, **row})
        path = tmp_path / "texts.txt" if part == "train" else pairs
        modes = {f"do_{part}": True, f"{part}_file": str(path)}
        with pytest.raises(UserError, match=rf"{path.name}, line 2: {message}"):
            SentenceVectors(settings(**modes))
        task = SentenceVectors(settings(**modes, skip_bad_rows=True))
        assert re.search(f"{path.name}: {note}", task.notes[-1])
    assert task.examples["eval"].labels == [1.0]


def test_a_single_text_has_nothing_to_differ_from(settings, tmp_path):
    (tmp_path / "one.txt").write_text("甲乙\n")
    with pytest.raises(UserError, match=r"one\.txt: a single text has no other one to differ"):
        SentenceVectors(settings(do_train=True, train_file=str(tmp_path / "one.txt")))
    # Two are enough for batches of 40, which are filled up with their copies.
    (tmp_path / "two.txt").write_text("甲乙丙\n丁戊\n")
    flags = {"num_train_steps": 2, "train_file": str(tmp_path / "two.txt")}
    start(settings(do_train=True, **flags), SentenceVectors)
    losses = losses_of(tmp_path / "run")
    assert losses and max(losses) < np.log(20)  # the least if copies counted as other texts


def test_without_dropout_there_is_nothing_to_learn(settings, tmp_path):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, **rates}))
    flags = {"bert_config_file": str(tmp_path / "config.json")}
    told = r"config\.json has no dropout .* both vectors of a text are the same; pass a --bert_conf"
    with pytest.raises(UserError, match=told):
        SentenceVectors(settings(do_train=True, **flags))
    SentenceVectors(settings(do_eval=True, **flags))
    # This one has its mixture alone to learn.
    SentenceVectors(settings(do_train=True, layer_mix=True, **flags))


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"train_file": None}, "--train_file is needed"),
        ({"temperature": 0.0}, "--temperature must be above 0"),
        ({"train_batch_size": 1}, "no other one to differ from"),
        ({"train_batch_size": 6, "gradient_accumulation_steps": 6}, "pass at least 12"),
        ({"label_column": "sentence1", "do_eval": True}, "name another column for each"),
        ({"text_pair_column": "c", "do_eval": True}, 'line 1: "c" is missing'),
        ({"r_drop_alpha": 1.0}, "--r_drop_alpha"),
        ({"text_pair_column": "sentence1"}, "name another column for each"),
        ({"label_smoothing": 0.1}, "--label_smoothing=0.1 needs classes"),
    ),
)
def test_mistakes(settings, changes, message):
    with pytest.raises(UserError, match=message):
        start(settings(do_train=True, **changes), SentenceVectors)
