"""F1 and exact match against results computed by hand."""

import sys

import pytest

from nezha_tf.tasks.reading_comprehension import metrics
from nezha_tf.util.errors import UserError


@pytest.mark.parametrize(
    "prediction, references, f1, em",
    (
        ("北京大学", ["北京大学"], 1, 1),
        # 4 and 5 characters with a common run of 2 (北京); a common subsequence would have 4.
        ("北京大学", ["北京市大学"], 2 * 2 / 9, 0),
        # 使, 用, iphone, 6s, 手, 机: the two tokens of the reference; case does not matter.
        ("使用iPhone 6s手机", ["iphone 6S"], 2 * 2 / 8, 0),
        ("NASA", ["nasa"], 1, 1),
        ("Howard Hawks", ["Hawks"], 2 * 1 / 3, 0),
        # Punctuation is removed and does not separate tokens: 20082009, 年 and 2008, 年.
        ("《红楼梦》", ["红楼梦。"], 1, 1),
        ("2008-2009年", ["2008年"], 2 * 1 / 4, 0),
        # ASCII commas and full stops are not removed: 3.5, 公, 里; 1,000, 人 and 1000, 人.
        ("3.5公里", ["3.5公里"], 1, 1),
        ("1,000人", ["1000人"], 2 * 1 / 4, 0),
        # Inner white space does not matter for these tokens, but prevents an exact match.
        ("3.5 公里", ["3.5公里"], 1, 0),
        (" 公里 ", ["公里"], 1, 1),
        # The best of several.
        ("李白", ["杜甫", "诗人李白"], 2 * 2 / 6, 0),
        ("李白", ["杜甫", "诗人李白", "李白"], 1, 1),
        # Repeated characters count as often as the run has them.
        ("哈哈哈", ["哈哈"], 2 * 2 / 5, 0),
        ("一二一二三", ["一二三"], 2 * 3 / 8, 0),
        ("", ["公里"], 0, 0),
        ("长", ["公里"], 0, 0),
        # Peculiarities of the official program: no tokens at all, and an ellipsis is a token.
        ("。", ["，"], 0, 1),
        ("你……", ["你"], 2 * 1 / 3, 0),
        # A question without an answer.
        ("", [], 1, 1),
        ("长", [], 0, 0),
    ),
)
def test_cmrc_by_hand(prediction, references, f1, em):
    found = metrics.measure([prediction], [references], "cmrc")
    assert found["f1"] == pytest.approx(100 * f1) and found["em"] == 100 * em
    assert found["average"] == pytest.approx(50 * (f1 + em))


@pytest.mark.parametrize(
    "prediction, references, f1, em",
    (
        ("The Cat sat.", ["cat sat"], 1, 1),
        # big, black, cat and black, dog.
        ("a big black cat", ["the black dog"], 2 * 1 / 5, 0),
        ("cat, dog", ["dog cat"], 1, 0),
        ("no no", ["no"], 2 * 1 / 3, 0),
        ("New York", ["Boston", "New York City"], 2 * 2 / 5, 0),
        ("New York", ["Boston", "new york!"], 1, 1),
        ("北京", ["北京市"], 0, 0),  # No spaces: each text is one word.
        ("", ["cat"], 0, 0),
        ("", [], 1, 1),
        ("cat", [], 0, 0),
        ("the", [], 1, 1),  # The normalised text is empty, as in the official program.
    ),
)
def test_squad_by_hand(prediction, references, f1, em):
    found = metrics.measure([prediction], [references], "squad")
    assert found["f1"] == pytest.approx(100 * f1) and found["em"] == 100 * em


@pytest.mark.parametrize("metric", metrics.METRICS)
def test_means_are_over_questions(metric):
    found = metrics.measure(["甲", "乙", "丙丁", ""], [["甲"], ["丙"], [], []], metric)
    assert found == {
        "f1": 50,
        "em": 50,
        "average": 50,
        "has_answer_f1": 50,
        "has_answer_em": 50,
        "no_answer_accuracy": 50,
    }
    assert set(metrics.measure(["甲"], [["甲"]], metric)) == set(metrics.NAMES)


def test_missing_libraries_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[eval\]'"):
        metrics.measure(["一"], [["一"]], "cmrc")
    assert metrics.measure(["一"], [["一"]], "squad")["f1"] == 100
