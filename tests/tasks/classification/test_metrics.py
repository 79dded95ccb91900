"""Metrics of classes and numbers against results computed by hand."""

import sys

import numpy as np
import pytest

from nezha_tf.tasks.classification import metrics
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


def test_one_class_by_hand():
    #                right a b c:  a: 2 of 3 right, 1 predicted as b; b: 1 of 2; c: does not occur
    label_ids, predicted = [0, 0, 0, 1, 1], [0, 0, 1, 1, 0]
    found = metrics.single(np.array(predicted), np.array(label_ids), ["a", "b", "c"])
    assert found["accuracy"] == pytest.approx(3 / 5)
    # Precision and recall: a 2/3 and 2/3, b 1/2 and 1/2.
    assert found["f1/a"] == pytest.approx(2 / 3) and found["f1/b"] == pytest.approx(1 / 2)
    assert found["f1/c"] == 0
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    # A class that is predicted but never there counts in the mean.
    absent = metrics.single(np.array([0, 1, 2]), np.array([0, 1, 0]), ["a", "b", "c"])
    assert absent["macro_f1"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    # (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)), b as the positive class.
    assert found["matthews_correlation"] == pytest.approx((1 * 2 - 1 * 1) / np.sqrt(2 * 2 * 3 * 3))
    assert set(metrics.OF_LABEL_TYPE["single"]) <= set(found)


def test_several_classes_by_hand():
    label_ids = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
    predicted = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    found = metrics.multi(predicted, label_ids, ["a", "b", "c"])
    # Micro: 2 right of 3 predicted and 3 actual; b 1 of 1 and 2, c 0 of 1 and 0.
    assert found["micro_f1"] == pytest.approx(2 / 3)
    assert [found[f"f1/{label}"] for label in "abc"] == pytest.approx([1, 2 / 3, 0])
    assert found["macro_f1"] == pytest.approx(5 / 9)
    assert found["exact_match"] == pytest.approx(1 / 3)
    assert set(metrics.OF_LABEL_TYPE["multi"]) <= set(found)


def test_one_class_that_may_be_absent_by_hand():
    label_ids = np.array([[1], [1], [0], [0], [0]])
    for predicted, expected in (([0] * 5, 0.0), ([1, 0, 1, 0, 0], 0.5), ([1, 1, 0, 0, 0], 1.0)):
        found = metrics.multi(np.array(predicted)[:, None], label_ids, ["a"])
        assert [found[name] for name in ("micro_f1", "macro_f1", "f1/a")] == [expected] * 3
        right = sum(a == b for a, b in zip(predicted, label_ids[:, 0], strict=True))
        assert found["exact_match"] == pytest.approx(right / 5)


def test_numbers_by_hand():
    label_ids, predicted = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 10.0])
    found = metrics.regression(predicted, label_ids)
    assert found["mean_squared_error"] == pytest.approx((0 + 1 + 1 + 36) / 4)
    a, b = label_ids - 2.5, predicted - 4
    assert found["pearson"] == pytest.approx((a @ b) / np.sqrt((a @ a) * (b @ b)))
    # Two neighbours of four ranks are swapped: 1 - 6 * 2 / (4 * 15).
    assert found["spearman"] == pytest.approx(0.8)
    for predicted in (np.full(4, 2.0), np.array([2.0])):
        found = metrics.regression(predicted, label_ids[: len(predicted)])
        assert found["pearson"] == found["spearman"] == 0
    assert set(metrics.OF_LABEL_TYPE["regression"]) == set(found)


def test_missing_libraries_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[eval\]'"):
        metrics.require_libraries()


def test_the_confusion_matrix_as_a_file_and_as_a_table(tmp_path):
    labels = ["正面", "b"]
    matrix = metrics.confusion_matrix([0, 0, 0, 1], [0, 1, 1, 1], 2)
    table = metrics.write_table(str(tmp_path), matrix, labels)
    lines = (tmp_path / "confusion.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == ["right \\ predicted\t正面\tb", "正面\t1\t2", "b\t0\t1"]
    assert table.splitlines()[1:] == [
        "  right \\ predicted  正面  b",
        "  正面                  1  2",
        "  b                     0  1",
    ]
    many = [str(number) for number in range(40)]
    table = metrics.write_table(str(tmp_path), np.eye(40, dtype=int), many)
    assert table == f"confusion matrix in {tmp_path / 'confusion.tsv'}"


def test_a_table_of_names_and_values_is_flush_left():
    lines = console.table("title", [("a", 1), ("long", "three")]).splitlines()
    assert lines == ["title", "  a     1", "  long  three"]
    assert console.table("title", []) == "title"


@pytest.mark.parametrize("labels", (["_a", "$x^$"], ["正面", "负面"], [str(i) for i in range(31)]))
@pytest.mark.filterwarnings("error")
def test_a_picture_without_characters_that_no_font_has(tmp_path, labels):
    """matplotlib warns for each character that it draws as a box."""
    matrix = np.arange(len(labels) ** 2).reshape(len(labels), -1)
    line = metrics.draw_matrix(str(tmp_path), matrix, labels)
    picture = tmp_path / "confusion.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and str(picture) in line
