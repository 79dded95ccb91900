"""The search for answers against trying every span of every window."""

import math

import numpy as np
import pytest

from nezha_tf.data.squad import Question
from nezha_tf.tasks.reading_comprehension.answers import AnswerSearch, highest
from nezha_tf.tasks.reading_comprehension.data import Example, Passage, best_windows, stretches_of


def make_example(rng, alphabet, is_whole_numbers):
    """Returns a passage of one-character tokens in windows, and logits, some beyond the end."""
    num_tokens, room = int(rng.integers(1, 40)), int(rng.integers(1, 12))
    stretches = list(stretches_of(num_tokens, room, int(rng.integers(1, room + 1))))
    text = "".join(rng.choice(list(alphabet), num_tokens))
    starts = np.arange(num_tokens)
    passage = Passage(text, starts, starts, starts + 1)
    offset = int(rng.integers(3, 6))
    example = Example(Question("Q", text, "?", ()), passage, offset, stretches, 0)
    lengths = [offset + stretch.count + 1 + int(rng.integers(0, 3)) for stretch in stretches]
    draw = (lambda n: rng.integers(0, 4, n)) if is_whole_numbers else (lambda n: rng.normal(size=n))
    logits = [[np.asarray(draw(n), np.float32) for n in lengths] for _ in range(2)]
    return example, *logits


def every_span(example, start_logits, end_logits, max_answer_length):
    """Yields (score, start, end) of all spans, in the order of their places."""
    passage = example.passage
    best = best_windows(example.stretches, len(passage.ids))
    for start in range(len(passage.ids)):
        first, count = example.stretches[best[start]]
        for end in range(start, min(start + max_answer_length, first + count)):
            logits = start_logits[best[start]], end_logits[best[start]]
            places = start - first + example.offset, end - first + example.offset
            yield sum(float(x[p]) for x, p in zip(logits, places, strict=True)), start, end


@pytest.mark.parametrize("alphabet", ("abcdefghijklmnopqrstuvwxyz0123456789", "ab"))
@pytest.mark.parametrize("is_whole_numbers", (False, True))
@pytest.mark.parametrize("n_best_size, max_answer_length", ((1, 3), (5, 1), (20, 4), (500, 50)))
def test_candidates_are_the_best_of_all_spans(
    alphabet, is_whole_numbers, n_best_size, max_answer_length
):
    rng = np.random.default_rng(3)
    for _ in range(25):
        example, *logits = make_example(rng, alphabet, is_whole_numbers)
        prediction = AnswerSearch(n_best_size, max_answer_length)(example, *logits)
        expected = {}
        spans = every_span(example, *logits, max_answer_length)
        for score, start, end in sorted(spans, key=lambda span: -span[0]):
            expected.setdefault(example.passage.text[start : end + 1], (score, start, end + 1))
        found = {c.text: (c.score, c.start, c.end) for c in prediction.candidates}
        expected = dict(list(expected.items())[:n_best_size])
        assert list(found) == list(expected)
        for text, (score, start, end) in expected.items():
            assert found[text] == (pytest.approx(score), start, end)
        total = sum(math.exp(score) for score, _, _ in expected.values())
        for candidate in prediction.candidates:
            assert candidate.probability == pytest.approx(math.exp(candidate.score) / total)
        assert prediction.best == prediction.candidates[0]
        assert prediction.null_score_diff is None


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
