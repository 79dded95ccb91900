"""The search for answers by hand; `test_answers_laws.py` tries every span of every window."""

import math

import numpy as np
import pytest

from nezha_tf.data.squad import Question
from nezha_tf.tasks.reading_comprehension.answers import AnswerSearch, highest
from nezha_tf.tasks.reading_comprehension.data import Example, Passage, stretches_of


def test_highest_is_a_sort():
    rng = np.random.default_rng(4)
    for _ in range(200):
        scores = rng.integers(0, 5, rng.integers(1, 30)).astype(float)
        scores[rng.random(len(scores)) < 0.3] = -np.inf
        count = int(rng.integers(1, 40))
        order = sorted(np.flatnonzero(scores > -np.inf), key=lambda place: -scores[place])
        assert highest(scores, count).tolist() == order[:count]


def two_windows():
    """Four tokens in two windows of three; "b" has 3 points, no answer 1 and 2.5 points."""
    starts = np.arange(4)
    passage = Passage("abcd", starts, starts, starts + 1)
    example = Example(Question("Q", "abcd", "?", ()), passage, 3, list(stretches_of(4, 3, 1)), 0)
    assert len(example.stretches) == 2
    start_logits = [np.array([2.0, 9, 9, 0, 2, 0, 9]), np.array([0.5, 9, 9, 0, 0, 0, 9])]
    end_logits = [np.array([0.5, 9, 9, 0, 1, 0, 9]), np.array([0.5, 9, 9, 0, 0, 0, 9])]
    return example, start_logits, end_logits


@pytest.mark.parametrize(
    "threshold, text", ((0.0, "b"), (-1.9, "b"), (-2.0, "b"), (-2.1, ""), (-9.0, ""))
)
def test_no_answer_is_predicted_above_the_threshold(threshold, text):
    example, *logits = two_windows()
    prediction = AnswerSearch(3, 2, threshold)(example, *logits)
    # The lowest of the windows' scores minus that of the best text.
    assert prediction.null_score_diff == (0.5 + 0.5) - 3
    assert prediction.best.text == text
    place = (prediction.best.start, prediction.best.end)
    assert place == ((1, 2) if text else (None, None))
    assert sum(c.probability for c in prediction.candidates) == pytest.approx(1)
    shares = {c.text: c.probability for c in prediction.candidates}
    assert prediction.best.probability == shares[text]
    assert shares[""] / shares["b"] == pytest.approx(math.exp(-2))


def test_no_answer_is_among_the_candidates_in_its_place_or_behind_them():
    example, *logits = two_windows()
    # b has 3, bc 2, c 0 + ..., no answer 1.
    texts = [c.text for c in AnswerSearch(20, 2, 0.0)(example, *logits).candidates]
    assert texts[:2] == ["b", "bc"] and texts.count("") == 1
    scores = [c.score for c in AnswerSearch(20, 2, 0.0)(example, *logits).candidates]
    assert scores == sorted(scores, reverse=True)
    texts = [c.text for c in AnswerSearch(1, 2, 0.0)(example, *logits).candidates]
    assert texts == ["b", ""]


def test_logits_that_overflowed_end_nothing():
    example, start_logits, end_logits = two_windows()
    start_logits[0][4] = end_logits[1][3] = np.nan
    prediction = AnswerSearch(3, 2, 0.0)(example, start_logits, end_logits)
    assert prediction.best.text and "b" not in [c.text[:1] for c in prediction.candidates[:2]]


def test_a_text_below_no_answer_but_within_the_threshold_is_predicted():
    example, *logits = two_windows()
    for first_token in (logits[0][0], logits[0][1]):
        first_token[0] = 4.0  # no answer has 4.5 points now, "b" 3
    prediction = AnswerSearch(1, 2, 2.0)(example, *logits)
    assert prediction.null_score_diff == 1.5
    assert prediction.best.text == "b"
    assert [c.text for c in prediction.candidates] == ["", "b"]
