"""The search for answers: the best of all spans of a passage, for any logits."""

import math

import laws
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nezha_tf.data.squad import Question
from nezha_tf.serving.windows import windows_on
from nezha_tf.tasks.reading_comprehension.answers import answers_to
from nezha_tf.tasks.reading_comprehension.data import Example, Passage
from nezha_tf.tasks.reading_comprehension.search import AnswerSearch

# Few values, so that scores are equal, or values of usual sizes.
LOGITS = st.integers(-3, 3).map(float) | st.floats(-40, 40, width=32, allow_subnormal=False)


@pytest.fixture(autouse=True, scope="module")
def eagerly():
    """Tracing takes longer than the search."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def in_windows(num_tokens, room, stride):
    windows = windows_on(np.array([num_tokens]), room, stride, is_last_full=False)
    return np.stack([windows.starts, windows.lengths], axis=1)


@st.composite
def examples(draw):
    """Draws a passage of tokens with gaps, in windows, and the logits of some windows.

    Returns (`Example`, starts, ends, flags of the windows).
    """
    gaps = draw(st.lists(st.integers(0, 2), min_size=1, max_size=14))
    widths = [draw(st.integers(1, 2)) for _ in gaps]
    starts = np.cumsum(gaps) + np.cumsum([0, *widths[:-1]])
    ends = starts + widths
    length = int(ends[-1]) + draw(st.integers(0, 2))
    text = draw(st.text("甲乙 ", min_size=length, max_size=length))
    passage = Passage(text, *(v.astype(np.int32) for v in (starts, starts, ends)))
    room = draw(st.integers(1, 8))
    stride = draw(st.integers(1, room))
    windows = in_windows(len(gaps), room, stride)
    offset = draw(st.integers(3, 5))
    example = Example(Question("Q", text, "?", ()), passage, offset, windows, 0)
    count = draw(st.integers(1, len(windows)))
    sizes = [int(offset + n + 1) + draw(st.integers(0, 2)) for _, n in windows[:count]]
    logits = [[draw(arrays(np.float32, n, elements=LOGITS)) for n in sizes] for _ in "se"]
    return example, *logits, {"max_seq_length": room + offset + 1, "doc_stride": stride}


def searched(example, start_logits, end_logits, windows, n_best_size, longest, threshold=None):
    """Returns the `Prediction` for a question."""
    flags = {**windows, "n_best_size": n_best_size, "max_answer_length": longest}
    flags |= {"null_score_diff_threshold": threshold}
    search = AnswerSearch({**flags, "version_2_with_negative": threshold is not None})
    (prediction,) = answers_to(search, [example], start_logits, end_logits)
    return prediction


def best_window(windows, token):
    """Returns the window with the most context for a token, by run_squad.py's rule."""
    scores = {
        number: min(token - first, first + length - 1 - token) + 0.01 * length
        for number, (first, length) in enumerate(windows)
        if first <= token < first + length
    }
    return max(scores, key=lambda number: (scores[number], -number))


def ranked(example, start_logits, end_logits, max_answer_length):
    """Returns (text, score, start, end) of all different texts, each once, best first."""
    windows, passage, found = example.windows[: len(start_logits)], example.passage, []
    for first in range(sum(windows[-1])):
        number = best_window(windows, first)
        begin, length = windows[number]
        for last in range(first, min(first + max_answer_length, begin + length)):
            score = float(start_logits[number][example.offset + first - begin])
            score += float(end_logits[number][example.offset + last - begin])
            found.append((score, int(passage.starts[first]), int(passage.ends[last])))
    best = {}
    for score, start, end in sorted(found, key=lambda answer: -answer[0]):
        best.setdefault(passage.text[start:end], (score, start, end))
    return [(text, *values) for text, values in best.items()]


def assert_probabilities(candidates):
    """They are the softmax over the scores."""
    best = max(c.score for c in candidates)
    total = sum(math.exp(c.score - best) for c in candidates)
    shares = [math.exp(c.score - best) / total for c in candidates]
    assert [c.probability for c in candidates] == pytest.approx(shares, abs=1e-12)


@laws.examples(40)
@given(examples(), st.integers(1, 12), st.integers(1, 6))
def test_candidates_are_the_best_texts_of_all_spans(values, n_best_size, max_answer_length):
    example, *logits, windows = values
    prediction = searched(example, *logits, windows, n_best_size, max_answer_length)
    expected = ranked(example, *logits, max_answer_length)[:n_best_size]
    assert [(c.text, c.score, c.start, c.end) for c in prediction.candidates] == expected
    assert prediction.best == prediction.candidates[0] and prediction.null_score_diff is None
    assert_probabilities(prediction.candidates)
    for candidate in prediction.candidates:
        assert candidate.text == example.passage.text[candidate.start : candidate.end]


@laws.examples(40)
@given(examples(), st.integers(1, 6), st.integers(-4, 4))
def test_no_answer_is_predicted_where_it_is_far_enough_above_the_best_text(
    values, n_best_size, threshold
):
    example, start_logits, end_logits, _ = values
    prediction = searched(*values, n_best_size, 3, threshold)
    texts = ranked(example, start_logits, end_logits, 3)[:n_best_size]
    # Of all windows, the one with the lowest score of no answer.
    null = min(float(s[0]) + float(e[0]) for s, e in zip(start_logits, end_logits, strict=True))
    assert prediction.null_score_diff == null - texts[0][1]
    is_null = prediction.null_score_diff > threshold
    assert prediction.best.text == ("" if is_null else texts[0][0])
    place = (prediction.best.start, prediction.best.end)
    assert place == ((None, None) if is_null else texts[0][2:])
    assert prediction.best in prediction.candidates
    # No answer is ranked among the texts; it and the best text are always present.
    rows = [*texts, ("", null, None, None)]
    rows.sort(key=lambda row: -row[1])
    kept = rows[:n_best_size]
    kept += [row for row in rows if row not in kept and row[0] in ("", texts[0][0])]
    assert [(c.text, c.score, c.start, c.end) for c in prediction.candidates] == kept
    assert_probabilities(prediction.candidates)


def test_no_answer_and_overflow_by_hand():
    """Four tokens in two windows of three; "b" has 3 points, no answer 1 and 2.5 points."""
    places = np.arange(4, dtype=np.int32)
    passage = Passage("abcd", places, places, places + 1)
    example = Example(Question("Q", "abcd", "?", ()), passage, 3, in_windows(4, 3, 1), 0)
    windows = {"max_seq_length": 7, "doc_stride": 1}
    starts = [np.array([2.0, 9, 9, 0, 2, 0, 9]), np.array([0.5, 9, 9, 0, 0, 0, 9])]
    ends = [np.array([0.5, 9, 9, 0, 1, 0, 9]), np.array([0.5, 9, 9, 0, 0, 0, 9])]
    for threshold, text in ((-2.0, "b"), (-2.1, "")):
        prediction = searched(example, starts, ends, windows, 3, 2, threshold)
        # The lowest of the windows' scores minus that of the best text.
        assert prediction.null_score_diff == (0.5 + 0.5) - 3
        assert prediction.best.text == text
        place = (prediction.best.start, prediction.best.end)
        assert place == ((1, 2) if text else (None, None))
        assert [c.text for c in prediction.candidates[:2]] == ["b", "bc"]
    starts[0][4] = ends[1][3] = np.nan
    prediction = searched(example, starts, ends, windows, 3, 2, 0.0)
    assert prediction.best.text and "b" not in [c.text[:1] for c in prediction.candidates[:2]]
