"""Candidates for blanks against the model's logits; texts that are typed or too long."""

import io

import numpy as np
import pytest
import tensorflow as tf
from generation_models import CONFIG, TOKENS

from nezha_tf import FullTokenizer, NezhaConfig, NezhaForMaskedLM, Vocabulary
from nezha_tf.generation.fill import BlankFiller, fill_mask
from nezha_tf.generation.score import PseudoScorer
from nezha_tf.generation.settings import FillMaskSettings
from nezha_tf.util.errors import UserError


def typed(monkeypatch, text, errors="strict"):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8", errors))


def test_blanks_are_filled(model, settings, monkeypatch, capsys):
    typed(monkeypatch, "甲[MASK]丙[MASK]\n乙\n".encode())
    fill_mask(settings(FillMaskSettings, input_file=None, top_k=2))
    ids = tf.constant([[2, 5, 4, 7, 4, 3]])
    logits = model[1](
        {
            "input_ids": ids,
            "input_mask": tf.ones_like(ids),
            "segment_ids": tf.zeros_like(ids),
            "masked_lm_positions": tf.constant([[2, 4]]),
        }
    )["masked_lm_logits"][0]
    expected = ["甲[MASK]丙[MASK]"]
    for number, probs in enumerate(tf.nn.softmax(logits).numpy()[:, :11], start=1):
        expected.append(f"[MASK] {number}")
        expected += [f"{TOKENS[i]} {probs[i]:.2%}" for i in np.argsort(-probs)[:2]]
    expected.append("no [MASK] in the text; write one for each token to fill in")
    shown = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in shown] == expected


def test_blank_lines_of_a_file_have_no_blanks_to_fill(settings, tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_text("甲[MASK]\n", encoding="utf-8")
    fill_mask(settings(FillMaskSettings, input_file=str(path)))
    plain = capsys.readouterr().out
    path.write_text("\n甲[MASK]\n\u3000\u200b\n", encoding="utf-8")
    fill_mask(settings(FillMaskSettings, input_file=str(path)))
    note = f"blank lines passed over: 2 (the first: {path}, line 1)\n"
    assert capsys.readouterr().out == plain + note


@pytest.mark.parametrize("errors", ("strict", "surrogateescape"))
def test_a_typed_line_that_is_not_utf_8_is_named(settings, monkeypatch, capsys, errors):
    typed(monkeypatch, "甲[MASK]\n".encode() + "甲[MASK]\n".encode("gb18030"), errors)
    with pytest.raises(UserError, match="the line is not UTF-8; convert the text"):
        fill_mask(settings(FillMaskSettings, input_file=None))
    # Python decodes what it reads at once, so that a wrong byte may stop the line before, too.
    assert errors == "strict" or capsys.readouterr().out.startswith("甲[MASK]\n")


def test_a_text_past_the_table_of_positions_is_one_line():
    config = NezhaConfig(**CONFIG, position_encoding="absolute")
    model, tokenizer = NezhaForMaskedLM(config), FullTokenizer(vocabulary=Vocabulary(TOKENS))
    longest = CONFIG["max_position_embeddings"] - 2
    message = rf"^a text of {longest + 3} tokens is past the table of absolute positions .*[^\n]$"
    filler = BlankFiller(model, tokenizer, 2)
    assert len(filler("甲" * (longest - 1) + "[MASK]")) == 1
    with pytest.raises(UserError, match=message):
        filler("甲" * longest + "[MASK]")
    scorer = PseudoScorer(model, tokenizer.vocabulary)
    assert len(scorer([5] * longest, 99, 4)) == longest
    with pytest.raises(UserError, match=message):
        scorer([5] * (longest + 1), 99, 4)


def test_mistakes_are_named(settings, tmp_path):
    for name, text in (("none.txt", "甲"), ("blank.txt", "\n \u200b\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for changes, message in (
        ({"input_file": str(tmp_path / "blank.txt")}, "blank.txt has no lines"),
        ({"input_file": str(tmp_path / "no.txt")}, "cannot read"),
        ({"input_file": str(tmp_path / "none.txt")}, r"none.txt, line 1: no \[MASK"),
        ({"input_file": "a", "text": "[MASK]"}, "pass one of them"),
        (
            {"text": "[MASK]", "input_file": None, "init_checkpoint": "none"},
            "no model in none: it is not",
        ),
        ({"text": "\udcff[MASK]", "input_file": None}, "not UTF-8"),
    ):
        with pytest.raises(UserError, match=message):
            fill_mask(settings(FillMaskSettings, **changes))
