"""Long texts in overlapping windows; `serving.windows` does the same inside a graph."""

from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
    """The tokens `start` to `start + length - 1` of a text."""

    start: int
    length: int


def windows_of(num_tokens, size, stride, *, is_last_full):
    """Returns the `Window`s that cover a text in order; an empty text has one, too.

    Args:
      num_tokens: the number of tokens of the text.
      size: most tokens of a window.
      stride: tokens between the starts of two windows, at most `size`.
      is_last_full: whether the last window begins earlier, so that it is full.
    """
    beyond = max(num_tokens - size, 0)
    starts = range(0, beyond + stride, stride)
    if is_last_full:
        starts = [min(start, beyond) for start in starts]
    return [Window(start, min(size, num_tokens - start)) for start in starts]


def best_windows(windows, num_tokens):
    """Returns for each token of a text the window in which it has the most context, int64 [P].

    The context is the smaller distance to the two ends of the window plus a hundredth of the
    window's length; of ties the first window (`_check_is_max_context` of BERT's run_squad.py).
    """
    starts, lengths = np.array(windows).T[:, :, None]
    left = np.arange(num_tokens) - starts
    right = lengths - 1 - left
    context = np.minimum(left, right) + 0.01 * lengths
    return np.argmax(np.where((left >= 0) & (right >= 0), context, -np.inf), axis=0)
