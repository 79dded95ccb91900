"""Metrics of texts against examples computed by hand."""

import math
import sys

import pytest

from nezha_tf.tasks.seq2seq import metrics
from nezha_tf.util.errors import UserError


def test_what_rouge_counts():
    assert metrics.tokens("我用Python3写 3.5行,Café！") == [
        *("我", "用", "python3", "写", "3", ".", "5", "行", ",", "café", "！")
    ]


@pytest.mark.parametrize(
    "prediction, reference, rouge_1, rouge_2, rouge_l",
    (
        ("今天很好", "今天很好", 1, 1, 1),
        # 3 of 4 and 3 of 4; 2 of 3 and 2 of 3.
        ("一二三四", "一二三五", 3 / 4, 2 / 3, 3 / 4),
        # A repeated token counts as often as the reference has it: 2 of 3, 2 of 2.
        ("一一二", "一二", 0.8, 2 / 3, 0.8),
        ("一一一一", "一", 0.4, 0, 0.4),
        # Order: all three single tokens, one pair of two, a subsequence of two.
        ("三一二", "一二三", 1, 1 / 2, 2 / 3),
        # 1 of 2 and 1 of 3 tokens: a Latin word is one token.
        ("用Python", "python 很好", 0.4, 0, 0.4),
        ("一二", "三四", 0, 0, 0),
        ("", "三四", 0, 0, 0),
    ),
)
def test_rouge_by_hand(prediction, reference, rouge_1, rouge_2, rouge_l):
    found = metrics.measure([prediction], [reference])
    scores = [found[name] for name in ("rouge_1", "rouge_2", "rouge_l")]
    assert scores == pytest.approx([rouge_1, rouge_2, rouge_l])


def test_bleu_by_hand():
    # 5 of 6 characters are right, 4 of 5 pairs, 3 of 4 triples, 2 of 3 quadruples.
    found = metrics.measure(["一二三四五七"], ["一二三四五六"])
    assert found["bleu"] == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    # Counts of all texts together, and the penalty for short texts: exp(1 - 12 / 10).
    found = metrics.measure(["一二三四五", "一二三四五"], ["一二三四五六", "一二三四五六"])
    assert found["bleu"] == pytest.approx(100 * math.exp(1 - 12 / 10))


def test_chrf_by_hand():
    # Of runs of one to six characters, these shares are right, of the prediction's as of the
    # reference's.
    found = metrics.measure(["一二三四五七"], ["一二三四五六"])
    assert found["chrf"] == pytest.approx(100 * (5 / 6 + 4 / 5 + 3 / 4 + 2 / 3 + 1 / 2 + 0) / 6)
    # Recall counts four times: precision 1, recall of runs of one to three 3/4, 2/3, 1/2.
    found = metrics.measure(["一二三"], ["一二三四"])
    recall = (3 / 4 + 2 / 3 + 1 / 2) / 3
    assert found["chrf"] == pytest.approx(100 * 5 * recall / (4 + recall))


def test_exact_match_passes_over_case_and_white_space():
    predictions = ["iphone手机", "很好", "很好。", ""]
    references = ["iPhone 手机", "很好", "很好", "无"]
    assert metrics.measure(predictions, references)["exact_match"] == 0.5


def test_means_are_over_texts():
    found = metrics.measure(["一二", "三"], ["一二", "四"])
    assert found["rouge_1"] == 0.5 and set(found) == set(metrics.NAMES)


def test_missing_libraries_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[eval\]'"):
        metrics.measure(["一"], ["一"])
