"""The uses of a pretrained model: by its objectives, as an export and on the page."""

import functools

import generation_models
import numpy as np
import pytest
import tensorflow as tf
from export_folders import ODD_TEXTS, ask, real_texts, write_folder

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.data.rows import Row
from nezha_tf.generation import writing
from nezha_tf.generation.sources import Packing
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.serving.any_model import FeaturesServing, FillMaskServing
from nezha_tf.serving.export import serving_of
from nezha_tf.serving.page import open_models
from nezha_tf.tasks.pretraining.serving import ContinuationServing, TargetServing
from nezha_tf.text.detokenization import detokenize
from nezha_tf.util.errors import UserError

LENGTH = 24
TEXTS = [*real_texts()[:6], *filter(str.strip, ODD_TEXTS)]


@pytest.fixture(scope="module")
def folder_for(tmp_path_factory):
    """Returns a function from objectives to the folder of such a run with random weights."""
    root = tmp_path_factory.mktemp("pretrained")

    def make(objectives):
        path = root / objectives.replace(",", "_")
        if not path.exists():
            settings = {"task": "pretraining", "objectives": objectives, "max_seq_length": LENGTH}
            write_folder(path, settings)
        return path

    return make


@pytest.fixture(scope="module")
def served(folder_for):
    """Returns a function from objectives and a task to the `Serving` of such a model."""

    @functools.cache
    def make(objectives, task):
        return serving_of(open_folder(folder_for(objectives)), task)[1]

    return make


UNILM = "bidirectional,seq2seq,left_to_right,right_to_left"


@pytest.mark.parametrize(
    "objectives, task, name, serving",
    (
        ("seq2seq", None, "seq2seq", TargetServing),
        ("right_to_left", None, "features", FeaturesServing),
        (UNILM, None, "fill_mask", FillMaskServing),
        (UNILM, "left_to_right", "left_to_right", ContinuationServing),
        ("left_to_right", "fill_mask", "fill_mask", FillMaskServing),
    ),
)
def test_a_model_serves_what_it_was_trained_for(folder_for, objectives, task, name, serving):
    found = serving_of(open_folder(folder_for(objectives)), task)
    assert found[0] == name and type(found[1]) is serving


def test_what_was_not_trained_is_refused(folder_for):
    for objectives, task, message in (
        (
            "bidirectional",
            "left_to_right",
            r"not trained for left_to_right; it serves as fill_mask",
        ),
        ("left_to_right", "seq2seq", r"not trained for seq2seq; it serves as left_to_right, feat"),
        ("right_to_left", "seq2seq", r"not trained for seq2seq; it serves as features$"),
    ):
        with pytest.raises(UserError, match=message):
            serving_of(open_folder(folder_for(objectives)), task)


def python_path(path, ability, texts, seed):
    """Returns what the programs' `TargetWriter` writes: a list of `Hypothesis` for each text."""
    folder = open_folder(path)
    form, tokenizer = pretrained_format(folder, ability), folder.tokenizer
    assert form.source.max_length == LENGTH // 2
    rows = [Row({"src": text}, "", 1) for text in texts]
    write = writing.TargetWriter(folder.make_model(), tokenizer, form, len(texts), seed, False)
    return write(rows, Packing(tokenizer, form.source).pack(rows))


@pytest.mark.parametrize("ability", ("left_to_right", "seq2seq"))
def test_texts_equal_the_program(folder_for, served, ability, monkeypatch):
    """Of a mixture; without words that programs take from the source; a seed for each text."""
    monkeypatch.setattr(writing, "detokenize", lambda tokens, *_: detokenize(tokens))
    expected = python_path(folder_for(UNILM), ability, TEXTS, seed=5)
    signatures = served(UNILM, ability).signatures()
    if ability == "left_to_right":
        seeds = 5 + np.arange(len(TEXTS))
        found = ask(signatures, "with_seed", text=TEXTS, seed=seeds)
        texts = found["continuations"]
    else:
        found = ask(signatures, text=TEXTS)
        texts = found["texts"]
    assert texts.tolist() == [[h.text for h in row] for row in expected]
    np.testing.assert_allclose(
        found["log_probs"], [[h.log_prob for h in row] for row in expected], rtol=1e-4, atol=1e-4
    )
    assert len(set(texts.ravel())) > len(TEXTS) / 2


@pytest.mark.parametrize("objective", ("left_to_right", "causal"))
def test_a_continuation_has_the_probability_of_its_tokens(
    folder_for, served, monkeypatch, objective
):
    """For each token, with a separate forward pass that sees only what is left of it."""
    folder = open_folder(folder_for(objective))
    model, vocabulary = folder.make_model(), folder.tokenizer.vocabulary
    monkeypatch.setattr(generation_models, "MASK", vocabulary.mask_id)
    prompt = [vocabulary.cls_id, *vocabulary.ids_of(folder.tokenizer.tokenize("今天很冷"))]
    found = ask(
        served(objective, None).signatures(),
        "from_ids",
        input_ids=[[*prompt, 0, 0]],
        input_mask=[[1] * len(prompt) + [0, 0]],
        seed=[3],
    )
    written = found["ids"][0, 0, : found["lengths"][0, 0]].tolist()
    total = 0.0
    target_format = pretrained_format(folder, "left_to_right").target_format
    assert (target_format.mode, target_format.segment_ids) == ("left_to_right", (2, 2))
    for n, token in enumerate(written):
        logits = generation_models.next_logits(model, prompt, [written[:n]], target_format)
        total += float(tf.nn.log_softmax(logits)[0, token])
    np.testing.assert_allclose(found["log_probs"][0, 0], total, atol=1e-3)


def test_the_page_shows_what_was_trained(folder_for):
    path = folder_for(UNILM)
    models = open_models([str(path)])
    assert set(models) == {"Fill in", "Continuation", "Writing", "Attention"}
    assert set(open_models([str(folder_for("right_to_left"))])) == {"Attention"}
    for title in ("Continuation", "Writing"):
        scores = models[title][path.name](text="今天很冷")["scores"]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)


def test_the_readme_says_how_prompts_are_cut(served):
    about = served("left_to_right", None).about
    assert "Prompts are cut at their front to 12 tokens, including `[CLS]`." in about
