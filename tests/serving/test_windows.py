"""Windows cover a text, and each token has one best window, by run_squad.py's rule."""

import itertools

import laws
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.serving.windows import windows_on


def is_best_by_run_squad(windows, number, position):
    """`_check_is_max_context` of BERT's run_squad.py."""
    best_score, best_number = None, None
    for index, (start, length) in enumerate(windows):
        end = start + length - 1
        if position < start or position > end:
            continue
        score = min(position - start, end - position) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best_number = score, index
    return number == best_number


@pytest.mark.parametrize("is_last_full", (True, False))
@laws.examples(200)
@given(num_tokens=st.integers(0, 80), size=st.integers(1, 20), data=st.data())
def test_windows_cover_the_text_and_each_token_has_one_best_window(
    is_last_full, num_tokens, size, data
):
    stride = data.draw(st.integers(1, size))
    found = windows_on(np.array([num_tokens]), size, stride, is_last_full)
    windows = np.stack([found.starts, found.lengths], axis=1).tolist()
    starts = [start for start, _ in windows]
    ends = [start + length for start, length in windows]
    # Nothing is left out, and the first window that reaches the end is the last one.
    tokens = {p for s, e in zip(starts, ends, strict=True) for p in range(s, e)}
    assert tokens == {*range(num_tokens)}
    assert ends[-1] == num_tokens and all(end < num_tokens for end in ends[:-1])
    regular = [stride * number for number in range(len(windows))]
    if is_last_full:
        assert {length for _, length in windows} == {min(size, num_tokens)}
        regular[-1] = max(0, num_tokens - size)
    else:
        assert all(length == size for _, length in windows[:-1])
    assert starts == regular
    rows, tokens = np.zeros(num_tokens, int), np.arange(num_tokens)
    best = found.best(rows, tokens, size, stride).numpy()
    for number, token in itertools.product(range(len(windows)), range(num_tokens)):
        assert (best[token] == number) == is_best_by_run_squad(windows, number, token)
