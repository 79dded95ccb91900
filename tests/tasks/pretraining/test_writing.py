"""What a pretrained model writes, by its objectives; what its export is."""

import generation_models
import numpy as np
import pytest
import tensorflow as tf
from export_folders import ODD_TEXTS, real_texts, write_folder

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.data.rows import Row
from nezha_tf.export import exporter
from nezha_tf.export.exporter import export_folder
from nezha_tf.export.features import FeaturesServing
from nezha_tf.export.fill_mask import FillMaskServing
from nezha_tf.generation import writing
from nezha_tf.generation.sources import Packing
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.tasks.pretraining.serving import ContinuationServing, TargetServing
from nezha_tf.text.detokenization import detokenize
from nezha_tf.util.errors import UserError

LENGTH = 24
TEXTS = [*real_texts()[:6], *filter(str.strip, ODD_TEXTS)]
UNILM = "bidirectional,seq2seq,left_to_right,right_to_left"


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
def test_an_export_is_of_what_was_trained(
    folder_for, tmp_path, monkeypatch, objectives, task, name, serving
):
    """Which of them it is; what they write is looked at below."""
    written = []
    monkeypatch.setattr(exporter, "write", lambda *arguments: written.append(arguments))
    message = export_folder(str(folder_for(objectives)), str(tmp_path / "export"), task)
    [(found, folder)] = written
    assert type(found) is serving and folder == str(tmp_path / "export")
    assert message.startswith(f"{name} in {folder}")


def test_what_was_not_trained_is_refused(folder_for):
    for objectives, task, message in (
        ("bidirectional", "left_to_right", r"not trained for left_to_right; it serves as fill_ma"),
        ("left_to_right", "seq2seq", r"not trained for seq2seq; it serves as left_to_right, feat"),
        ("right_to_left", "seq2seq", r"not trained for seq2seq; it serves as features$"),
    ):
        with pytest.raises(UserError, match=message):
            pretrained_format(open_folder(folder_for(objectives)), task)


@pytest.mark.parametrize("serving", (ContinuationServing, TargetServing))
def test_what_is_served_is_what_the_programs_write(folder_for, serving, monkeypatch):
    """Of a mixture; without words that programs take from the source; a seed for each text."""
    monkeypatch.setattr(writing, "detokenize", lambda tokens, *_: detokenize(tokens))
    folder = open_folder(folder_for(UNILM))
    form = pretrained_format(folder, serving.ability)
    assert form.source.max_length == LENGTH // 2
    rows = [Row({"src": text}, "", 1) for text in TEXTS]
    tokenizer, batch = folder.tokenizer, (len(TEXTS), 5, False)
    writer = writing.TargetWriter(folder.make_model(), tokenizer, form, *batch)
    expected = writer(rows, Packing(tokenizer, form.source).pack(rows))
    functions = serving(folder).signatures()
    if "with_seed" in functions:
        found = functions["with_seed"](tf.constant(TEXTS), 5 + tf.range(len(TEXTS)))
    else:
        found = functions["serving_default"](tf.constant(TEXTS))
    texts = [[text.decode() for text in row] for row in found[serving.written].numpy()]
    assert texts == [[h.text for h in row] for row in expected]
    log_probs = [[h.log_prob for h in row] for row in expected]
    np.testing.assert_allclose(found["log_probs"], log_probs, rtol=1e-4, atol=1e-4)
    assert len({text for row in texts for text in row}) > len(TEXTS) / 2


@pytest.mark.parametrize("objective", ("left_to_right", "causal"))
def test_a_continuation_has_the_probability_of_its_tokens(folder_for, monkeypatch, objective):
    """For each token, with a separate forward pass that sees only what is left of it."""
    folder = open_folder(folder_for(objective))
    model, vocabulary = folder.make_model(), folder.tokenizer.vocabulary
    monkeypatch.setattr(generation_models, "MASK", vocabulary.mask_id)
    prompt = [vocabulary.cls_id, *vocabulary.ids_of(folder.tokenizer.tokenize("今天很冷"))]
    serving = ContinuationServing(folder)
    assert "Prompts are cut at their front to 12 tokens, including `[CLS]`." in serving.about
    from_ids = serving.signatures()["from_ids"]
    mask = [1] * len(prompt) + [0, 0]
    found = from_ids(tf.constant([[*prompt, 0, 0]]), tf.constant([mask]), tf.constant([3]))
    written = found["ids"][0, 0, : found["lengths"][0, 0]].numpy().tolist()
    target_format = pretrained_format(folder, "left_to_right").target_format
    assert (target_format.mode, target_format.segment_ids) == ("left_to_right", (2, 2))
    total = 0.0
    for n, token in enumerate(written):
        logits = generation_models.next_logits(model, prompt, [written[:n]], target_format)
        total += float(tf.nn.log_softmax(logits)[0, token])
    np.testing.assert_allclose(found["log_probs"][0, 0], total, atol=1e-3)
