"""The whole fine-tuning: a toy task that is learnt, from the command, and mistakes in its flags."""

import dataclasses
import itertools
import json
import random
import sys

import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_is_a_model

import nezha_tf
from nezha_tf import NezhaConfig, checkpoints
from nezha_tf.checkpoints.name_table import tf1_names
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.tasks.seq2seq.task import Seq2Seq
from nezha_tf.training.run import run as start
from nezha_tf.util.errors import UserError

CHARACTERS = "甲乙丙丁戊己"
CONFIG = {
    "vocab_size": 11,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "type_vocab_size": 6,
    "use_relative_position": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # With 0.02, such a small model needs thousands of steps to learn where to look.
    "initializer_range": 0.1,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with sources of four characters out of six; tests copy it."""
    folder = tmp_path_factory.mktemp("copy")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *CHARACTERS]))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    sources = ["".join(chosen) for chosen in itertools.product(CHARACTERS, repeat=4)]
    random.Random(1).shuffle(sources)
    lines = [json.dumps({"src": text, "tgt": text}, ensure_ascii=False) for text in sources]
    (folder / "train.jsonl").write_text("\n".join(lines[:1200]) + "\n", encoding="utf-8")
    (folder / "dev.jsonl").write_text("\n".join(lines[1200:]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def settings(data, tmp_path):
    """Returns the settings of a short run on these data."""
    paths = {"vocab_file": "vocab.txt", "bert_config_file": "config.json"}
    paths |= {"train_file": "train.jsonl", "eval_file": "dev.jsonl", "predict_file": "dev.jsonl"}
    return Seq2SeqSettings(
        **{flag: str(data / name) for flag, name in paths.items()},
        output_dir=str(tmp_path / "run"),
        max_source_length=6,
        max_target_length=5,
        eval_batch_size=32,
        predict_batch_size=32,
        learning_rate=5e-3,
        num_train_steps=120,
        steps_per_loop=60,
        jit_compile=False,
    )


def predictions(folder):
    text = (folder / "predictions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def printed(output, name):
    """Returns a number of the table at the end."""
    return float(next(line for line in output.splitlines() if name in line).split()[-1])


def test_copying_is_learnt_from_masked_targets(data, settings, tmp_path, capsys):
    """To the texts of sources that were not in training."""
    changes = {"do_train": True, "do_eval": True, "do_predict": True, "best_metric": "exact_match"}
    changes |= {"save_checkpoints_steps": 60, "num_return_sequences": 2}
    start(dataclasses.replace(settings, **changes), Seq2Seq)
    output = capsys.readouterr().out
    assert "train.jsonl: 1,200 pairs, 6.4 passes" in output
    folder = tmp_path / "run"
    results = json.loads((folder / "eval_results.json").read_text())
    assert results["exact_match"] > 0.95 and results["rouge_l"] > 0.95 and results["loss"] < 0.1
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    scores = {m["step"]: m["eval_exact_match"] for m in metrics if "eval_exact_match" in m}
    assert set(scores) == {60, 120}
    assert all(f"  exact_match {score:.4g}  " in output for score in scores.values())
    best = json.loads((folder / "best_checkpoint.json").read_text())
    assert best["exact_match"] == max(scores.values())
    assert f"weights from {folder / 'model.ckpt'}-{best['global_step']}" in output

    lines = (data / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    written = predictions(folder)
    assert [{"src": w["src"], "tgt": w["tgt"]} for w in written] == [*map(json.loads, lines)]
    right = [w["prediction"] == w["tgt"] for w in written]
    assert sum(right) == pytest.approx(scores[best["global_step"]] * len(right))
    assert printed(output, "predict exact_match") == pytest.approx(
        sum(right) / len(right), abs=1e-3
    )
    for line in written:
        first, second = line["hypotheses"]
        assert first["text"] == line["prediction"] and first["score"] == line["score"]
        assert first["score"] >= second["score"] and first["text"] != second["text"]
    settings = {"task": "seq2seq", "max_seq_length": 11, "num_return_sequences": 2}
    vocab_file = data / "vocab.txt"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "the best by exact_match" in card and "| train | 1,200 |" in card
    assert "--do_predict" in card.split("## Use")[1]
    assert_is_a_model(folder, NezhaForMaskedLM, best["global_step"], vocab_file, **settings)


@pytest.mark.parametrize("lora_rank", (0, 2))
def test_a_checkpoint_of_two_segments_is_extended(settings, tmp_path, capsys, lora_rank):
    """In a run of shifted targets and moving averages; with adapters it saves the table, too."""
    old = NezhaForMaskedLM(_config(tmp_path, type_vocab_size=2))
    prefix = str(tmp_path / "old" / "model.ckpt")
    checkpoints.save_tf1_checkpoint(old, prefix)
    changes = {"do_train": True, "do_eval": True, "do_predict": True, "init_checkpoint": prefix}
    changes |= {"num_train_steps": 1, "learning_rate": 0.0, "warmup_proportion": 0.0}
    changes |= {"target_prediction": "shift", "decoding": "greedy", "ema_decay": 0.5}
    changes |= {"max_eval_generated": 4, "lora_rank": lora_rank}
    settings = dataclasses.replace(settings, **changes)
    start(settings, Seq2Seq)
    output = capsys.readouterr().out
    assert "its two segment rows extended to six" in output
    assert 0 <= printed(output, "predict exact_match") <= 1
    assert len(predictions(tmp_path / "run")) == 96
    new = tf.train.load_checkpoint(f"{settings.output_dir}/model.ckpt-1")
    table = new.get_tensor("bert/embeddings/token_type_embeddings")
    rows = old.encoder.embeddings.token_type_embeddings.numpy()
    assert np.array_equal(table, rows[[0, 1, 0, 0, 0, 1]])
    # The pooler has no gradient and no moments, and does not change.
    assert not [n for n in new.get_variable_to_shape_map() if "pooler" in n and "adam" in n]
    loaded = tf1_names(nezha_tf.load(settings.output_dir)[1])
    for name, variable in tf1_names(old).items():
        if name != "bert/embeddings/token_type_embeddings":
            np.testing.assert_array_equal(loaded[name].numpy(), variable.numpy(), err_msg=name)
    other = {"output_dir": str(tmp_path / "other"), "do_train": False, "do_eval": False}
    with pytest.raises(UserError, match=r"token_type_embeddings has shape \[2, 32\]"):
        start(dataclasses.replace(settings, **other, ema_decay=0.0), Seq2Seq)


def _config(folder, **changes):
    path = folder / "changed.json"
    path.write_text(json.dumps({**CONFIG, **changes}))
    return NezhaConfig.from_json_file(path)


def test_missing_libraries_are_told_at_the_start(settings, tmp_path, monkeypatch):
    """Where all targets are there, so that what is written will be measured."""
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    settings = dataclasses.replace(settings, do_train=True, do_eval=False, do_predict=True)
    with pytest.raises(UserError, match=r"metrics of texts need .*\[eval\]"):
        Seq2Seq(settings)
    (tmp_path / "short.jsonl").write_text('{"src": "甲", "tgt": "乙"}\n{"src": "甲"}\n')
    Seq2Seq(dataclasses.replace(settings, predict_file=str(tmp_path / "short.jsonl")))


def test_mistakes_are_one_line(settings, tmp_path):
    settings = dataclasses.replace(settings, do_train=True, do_eval=True, do_predict=True)
    (tmp_path / "short.jsonl").write_text('{"src": "甲", "tgt": "乙"}\n{"src": "甲"}\n')
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + "甲\n" * 20)
    short = str(tmp_path / "short.jsonl")
    _config(tmp_path, type_vocab_size=2)
    two_segments = str(tmp_path / "changed.json")
    (tmp_path / "absolute.json").write_text(
        json.dumps({**CONFIG, "use_relative_position": False, "max_position_embeddings": 10})
    )
    for changes, message in (
        ({"train_file": None}, "--train_file is needed"),
        ({"vocab_file": None}, "--vocab_file is needed"),
        ({"vocab_file": str(tmp_path / "vocab.txt")}, "vocabulary has 25 tokens"),
        ({"train_file": short}, 'short.jsonl, line 2: "tgt" is missing'),
        ({"predict_file": "none.jsonl"}, "--predict_file: no file matches"),
        ({"max_source_length": 2}, "--max_source_length=2 leaves no room"),
        ({"max_target_length": 1}, "--max_target_length=1 leaves no room"),
        ({"bert_config_file": two_segments}, "needs type_vocab_size 6"),
        (
            {"bert_config_file": str(tmp_path / "absolute.json")},
            "--max_source_length + --max_target_length=11 is past the table of absolute positions",
        ),
        ({"best_metric": "bleu", "max_eval_generated": 0}, "--max_eval_generated"),
        ({"banned_words": ["甲乙"]}, "'甲乙' has 2 tokens"),
        ({"banned_words": ["𠮷"]}, "--banned_words: '𠮷' is not in the vocabulary"),
        ({"banned_words": ["[SEP]"]}, "[SEP] ends each target, so it cannot be banned"),
        (
            {"exempt_words": ["甲𠮷"], "no_repeat_ngram_size": 2},
            "--exempt_words: '甲𠮷' is not in the vocabulary",
        ),
        ({"min_target_length": 9}, "min_length 9"),
        ({"temperature": 0.0}, "temperature"),
    ):
        with pytest.raises(UserError) as error:
            Seq2Seq(dataclasses.replace(settings, **changes))
        assert message in str(error.value) and len(str(error.value).splitlines()) == 1
    Seq2Seq(dataclasses.replace(settings, banned_words=["[UNK]"]))
    # Without targets there is nothing to measure.
    settings = dataclasses.replace(settings, predict_file=short)
    Seq2Seq(settings)
    settings = dataclasses.replace(settings, do_train=False, do_eval=False, do_predict=False)
    with pytest.raises(UserError, match="pass --do_train or --do_eval or --do_predict"):
        start(settings, Seq2Seq)
    with pytest.raises(UserError, match=r"no checkpoint in .*pass --init_checkpoint, or train"):
        start(dataclasses.replace(settings, do_predict=True), Seq2Seq)
