"""Models that predict next tokens: trained, opened, and asked to write, to score and to go on."""

import json

import numpy as np
import pytest
import small_runs
import tensorflow as tf
from export_folders import write_folder
from generation_models import next_logits
from small_runs import LENGTHS, TEXT, text_of

import nezha_tf
from nezha_tf import Vocabulary
from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.generation.generator import Generator
from nezha_tf.generation.score import score_text
from nezha_tf.generation.settings import GenerateSettings, ScoreSettings
from nezha_tf.generation.sources import pad_left
from nezha_tf.generation.writing import generate_text
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.serving.page import models_of
from nezha_tf.tasks.pretraining.evaluation import lengths_of

LENGTH = LENGTHS.max_seq_length


@pytest.fixture
def trained(tmp_path):
    """Returns (folder, results of the evaluation) of a short run of `causal`."""
    small_runs.write_data(tmp_path, hidden_size=32)
    flags = ("--do_eval", "--num_train_steps=200", "--learning_rate=1e-2")
    return tmp_path / "run", small_runs.train(tmp_path, "run", "causal", *flags)


def test_a_causal_model_goes_on_and_scores(trained, tmp_path):
    """From the folder alone, with no flag that tells its form."""
    folder, results = trained
    loss = results["next_token_loss"]
    assert results["next_token_perplexity"] == pytest.approx(np.exp(loss))
    # A text of m characters has m + 1 predictions: [SEP] is one, and has no character.
    texts = [text_of(number) for number in range(200, 240)]
    share = sum(len(text) + 1 for text in texts) / sum(map(len, texts))
    expected = loss / np.log(2) * share
    assert results["next_token_bits_per_character"] == pytest.approx(expected, rel=1e-4)

    prompt, wanted = "".join(TEXT[3:6]), "".join(TEXT[6:9])
    said = generate_text(
        GenerateSettings(
            model_folder=str(folder), prompt=prompt, decoding="greedy", jit_compile=False
        )
    )
    assert wanted in said
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


def test_targets_have_the_probability_of_their_tokens(tmp_path):
    """For each token, with a separate forward pass over the source and what is left of it."""
    write_folder(
        tmp_path / "run",
        {"task": "pretraining", "objectives": "span_corruption", "max_seq_length": LENGTH},
    )
    folder = open_folder(tmp_path / "run")
    model, vocabulary = folder.make_model(), folder.tokenizer.vocabulary
    form = pretrained_format(folder, "seq2seq")
    assert form.target_format.target_prediction == "shift"
    source = vocabulary.ids_of(["[CLS]", *"今天很冷", "[SEP]"])
    generator = Generator(model, vocabulary, form.target_format, form.options, jit_compile=False)
    found = generator(*pad_left([source], 8))
    written = found.ids[0, 0, : found.lengths[0, 0]].numpy().tolist()
    assert len(written) > 1
    total = 0.0
    for n, token in enumerate(written):
        logits = next_logits(model, source, [written[:n]], form.target_format)
        total += float(tf.nn.log_softmax(logits)[0, token])
    np.testing.assert_allclose(found.log_probs[0, 0], total, atol=1e-3)
