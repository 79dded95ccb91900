"""The uses of a pretrained model: by its objectives, as an export and on the page."""

import functools

import generation_models
import numpy as np
import pytest
import tensorflow as tf
from export_folders import ask, write_folder

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.serving.any_model import FeaturesServing, FillMaskServing
from nezha_tf.serving.export import serving_of
from nezha_tf.serving.page import open_models
from nezha_tf.tasks.seq2seq.serving import WritingServing
from nezha_tf.util.errors import UserError

LENGTH = 24
UNILM = "bidirectional,seq2seq,left_to_right,right_to_left"


@pytest.fixture(scope="module")
def folder_for(tmp_path_factory):
    """Returns a function from objectives to the folder of such a run with random weights."""
    root = tmp_path_factory.mktemp("pretrained")

    @functools.cache
    def make(objectives):
        path = root / objectives.replace(",", "_")
        settings = {"task": "pretraining", "objectives": objectives, "max_seq_length": LENGTH}
        write_folder(path, settings)
        return path

    return make


@pytest.fixture(scope="module")
def served(folder_for):
    """Returns a function from objectives and a task to (its name, the model's `Serving`)."""
    return functools.cache(lambda *key: serving_of(open_folder(folder_for(key[0])), key[1]))


@pytest.mark.parametrize(
    "objectives, task, name, kind",
    (
        ("seq2seq", None, "seq2seq", WritingServing),
        ("right_to_left", None, "features", FeaturesServing),
        (UNILM, None, "fill_mask", FillMaskServing),
        (UNILM, "left_to_right", "left_to_right", WritingServing),
        ("left_to_right", "fill_mask", "fill_mask", FillMaskServing),
    ),
)
def test_a_model_serves_what_it_was_trained_for(served, objectives, task, name, kind):
    found, serving = served(objectives, task)
    assert found == name and type(serving) is kind


def test_what_was_not_trained_is_refused(served):
    for objectives, task, message in (
        ("bidirectional", "left_to_right", r"not trained for left_to_right; it serves as fill_m"),
        ("left_to_right", "seq2seq", r"not trained for seq2seq; it serves as left_to_right, feat"),
        ("right_to_left", "seq2seq", r"not trained for seq2seq; it serves as features$"),
    ):
        with pytest.raises(UserError, match=message):
            served(objectives, task)


@pytest.mark.parametrize(
    "objectives, mode, prediction, segment_ids",
    (
        (UNILM, "left_to_right", "masked", (2, 2)),
        ("causal", "left_to_right", "shift", (2, 2)),
        (UNILM, "seq2seq", "masked", (4, 5)),
        ("span_corruption", "seq2seq", "shift", (4, 5)),
    ),
)
def test_what_is_written_has_the_probability_of_its_tokens(
    folder_for, served, monkeypatch, objectives, mode, prediction, segment_ids
):
    """For each token, with a separate forward pass that sees only what is left of it."""
    folder = open_folder(folder_for(objectives))
    model, vocabulary = folder.make_model(), folder.tokenizer.vocabulary
    monkeypatch.setattr(generation_models, "MASK", vocabulary.mask_id)
    end = ["[SEP]"] if mode == "seq2seq" else []
    source = vocabulary.ids_of(["[CLS]", *"今天很冷", *end])
    seed = {"seed": [3]} if mode == "left_to_right" else {}
    found = ask(
        served(objectives, mode)[1].signatures(),
        "from_ids",
        input_ids=[[*source, 0, 0]],
        input_mask=[[1] * len(source) + [0, 0]],
        **seed,
    )
    written = found["ids"][0, 0, : found["lengths"][0, 0]].tolist()
    assert len(written) > 1
    target_format = pretrained_format(folder, mode).target_format
    form = (target_format.mode, target_format.target_prediction, target_format.segment_ids)
    assert form == (mode, prediction, segment_ids)
    total = 0.0
    for n, token in enumerate(written):
        logits = generation_models.next_logits(model, source, [written[:n]], target_format)
        total += float(tf.nn.log_softmax(logits)[0, token])
    np.testing.assert_allclose(found["log_probs"][0, 0], total, atol=1e-3)


def test_the_page_shows_what_was_trained(folder_for):
    path = folder_for(UNILM)
    models = open_models([str(path)])
    assert set(models) == {"Fill in", "Continuation", "Writing", "Attention"}
    assert set(open_models([str(folder_for("right_to_left"))])) == {"Attention"}
    answer = models["Continuation"][path.name](text="今天很冷")
    assert len(answer["scores"]) == len(answer["continuations"]) == 3
    assert answer["scores"] == sorted(answer["scores"], reverse=True)


def test_the_readme_says_how_prompts_are_cut(served):
    about = served(UNILM, "left_to_right")[1].about
    assert "Prompts are cut at their front to 12 tokens, including `[CLS]`." in about
