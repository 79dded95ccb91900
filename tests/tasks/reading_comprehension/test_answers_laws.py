"""Property tests of answers: the best of all spans of a passage, for any logits."""

import math

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nezha_tf.data.squad import Question
from nezha_tf.tasks.reading_comprehension.answers import AnswerSearch
from nezha_tf.tasks.reading_comprehension.data import Example, Passage, stretches_of

# Few values, so that scores are equal, or values of usual sizes.
LOGITS = st.integers(-3, 3).map(float) | st.floats(-40, 40, width=32)


@st.composite
def examples(draw):
    """Draws a passage of tokens with gaps, in windows, and the logits of some windows."""
    gaps = draw(st.lists(st.integers(0, 2), min_size=1, max_size=14))
    widths = [draw(st.integers(1, 2)) for _ in gaps]
    starts = np.cumsum(gaps) + np.cumsum([0, *widths[:-1]])
    ends = starts + widths
    length = int(ends[-1]) + draw(st.integers(0, 2))
    text = draw(st.text("甲乙 ", min_size=length, max_size=length))
    passage = Passage(text, np.arange(len(gaps)), starts, ends)
    room = draw(st.integers(1, 8))
    stretches = list(stretches_of(len(gaps), room, draw(st.integers(1, room))))
    offset = draw(st.integers(3, 5))
    example = Example(Question("Q", text, "?", ()), passage, offset, stretches, 0)
    count = draw(st.integers(1, len(stretches)))
    sizes = [offset + s.count + 1 + draw(st.integers(0, 2)) for s in stretches[:count]]
    logits = [[draw(arrays(np.float32, n, elements=LOGITS)) for n in sizes] for _ in "se"]
    return example, *logits


def best_window(stretches, token):
    """Returns the window with the most context for a token, by run_squad.py's rule."""
    scores = {
        window: min(token - first, first + count - 1 - token) + 0.01 * count
        for window, (first, count) in enumerate(stretches)
        if first <= token < first + count
    }
    return max(scores, key=lambda window: (scores[window], -window))


def every_answer(example, start_logits, end_logits, max_answer_length):
    """Returns {text: (score, start, end)} of all texts, with the best place of each, best first."""
    stretches, passage, found = example.stretches[: len(start_logits)], example.passage, []
    for first in range(sum(stretches[-1])):
        window = best_window(stretches, first)
        begin, count = stretches[window]
        for last in range(first, min(first + max_answer_length, begin + count)):
            score = float(start_logits[window][example.offset + first - begin])
            score += float(end_logits[window][example.offset + last - begin])
            found.append((score, int(passage.starts[first]), int(passage.ends[last])))
    found.sort(key=lambda answer: -answer[0])
    return {passage.text[s:e]: (score, s, e) for score, s, e in reversed(found)}, found


def ranked(example, start_logits, end_logits, max_answer_length):
    """Returns (text, score, start, end) with different texts, best first."""
    best, found = every_answer(example, start_logits, end_logits, max_answer_length)
    order = dict.fromkeys(example.passage.text[s:e] for _, s, e in found)
    return [(text, *best[text]) for text in order]


@laws.examples(150)
@given(examples(), st.integers(1, 12), st.integers(1, 6))
def test_candidates_are_the_best_texts_of_all_spans(values, n_best_size, max_answer_length):
    example, *logits = values
    prediction = AnswerSearch(n_best_size, max_answer_length)(example, *logits)
    expected = ranked(example, *logits, max_answer_length)[:n_best_size]
    assert [(c.text, c.score, c.start, c.end) for c in prediction.candidates] == expected
    assert prediction.best == prediction.candidates[0] and prediction.null_score_diff is None
    assert_probabilities(prediction.candidates)
    for candidate in prediction.candidates:
        assert candidate.text == example.passage.text[candidate.start : candidate.end]


def assert_probabilities(candidates):
    total = sum(math.exp(c.score - candidates[0].score) for c in candidates)
    shares = [math.exp(c.score - candidates[0].score) / total for c in candidates]
    assert [c.probability for c in candidates] == pytest.approx(shares, abs=1e-12)
    assert sum(c.probability for c in candidates) == pytest.approx(1)


@laws.examples(150)
@given(examples(), st.integers(1, 6), st.integers(-4, 4))
def test_no_answer_is_predicted_where_it_is_far_enough_above_the_best_text(
    values, n_best_size, threshold
):
    _, start_logits, end_logits = values
    prediction = AnswerSearch(n_best_size, 3, threshold)(*values)
    texts = ranked(*values, 3)[:n_best_size]
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
    best = max(c.score for c in prediction.candidates)
    total = sum(math.exp(c.score - best) for c in prediction.candidates)
    for candidate in prediction.candidates:
        share = math.exp(candidate.score - best) / total
        assert candidate.probability == pytest.approx(share, abs=1e-12)
