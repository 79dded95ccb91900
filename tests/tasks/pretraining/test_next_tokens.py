"""Models that predict next tokens: trained, opened, and asked to write, to score and to go on."""

import json

import numpy as np
import pytest
import small_runs
import tensorflow as tf
from generation_models import next_logits
from small_runs import TEXT, text_of

import nezha_tf
from nezha_tf import Vocabulary
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.generation.score import score_text
from nezha_tf.generation.settings import GenerateSettings, ScoreSettings
from nezha_tf.generation.writing import generate_text
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.serving.page import models_of
from nezha_tf.tasks.pretraining.evaluation import lengths_of


def test_a_causal_model_goes_on_and_scores(tmp_path):
    """From the folder alone, with no flag that tells its form."""
    small_runs.write_data(tmp_path, hidden_size=32)
    flags = ("--do_eval", "--num_train_steps=200", "--learning_rate=2e-2")
    results, folder = small_runs.train(tmp_path, "run", "causal", *flags), tmp_path / "run"
    loss = results["next_token_loss"]
    assert results["next_token_perplexity"] == pytest.approx(np.exp(loss))
    # A text of m characters has m + 1 predictions: [SEP] is one, and has no character.
    texts = [text_of(number) for number in range(200, 240)]
    share = sum(len(text) + 1 for text in texts) / sum(map(len, texts))
    expected = loss / np.log(2) * share
    assert results["next_token_bits_per_character"] == pytest.approx(expected, rel=1e-4)

    prompt, wanted = "".join(TEXT[3:6]), "".join(TEXT[6:9])
    flags = {"model_folder": str(folder), "prompt": prompt, "jit_compile": False}
    assert wanted in generate_text(GenerateSettings(**flags, decoding="greedy"))
    (tmp_path / "texts.txt").write_text(prompt + wanted + "\n", encoding="utf-8")
    output_file = tmp_path / "scores.jsonl"
    files = {"input_file": str(tmp_path / "texts.txt"), "output_file": str(output_file)}
    score_text(ScoreSettings(model_folder=str(folder), **files))
    found = json.loads(output_file.read_text(encoding="utf-8"))
    tokenizer, model = nezha_tf.load(str(folder))
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *prompt, *wanted])
    target_format = pretrained_format(open_folder(folder), "left_to_right").target_format
    logits = [next_logits(model, ids[:n], [[]], target_format)[0] for n in range(1, 7)]
    parts = tf.nn.log_softmax(logits).numpy()[range(6), ids[1:]]
    assert found["tokens"] == 6
    np.testing.assert_allclose(found["log_prob"], parts.sum(), rtol=1e-4)
    # All but the first are nearly certain.
    assert parts[1:].min() > -1.0 > parts[0]
    assert set(models_of(open_folder(folder))) == {"Continuation", "Attention"}


def test_the_characters_of_tokens():
    special = ["[PAD]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, "词", "##ab", "[unused]", "#"]
    assert lengths_of(Vocabulary(tokens)).tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 2, 8, 1]
