"""The learner of tokens against tensorflow-text's own, on any words."""

import laws
from hypothesis import example, given
from hypothesis import strategies as st
from plain_vocabulary import by_frequency, learned_tokens

from nezha_tf.text.piece_learner import PieceLearner

# Few letters, so that words share their ends; a word as long as the longest, and a longer one.
WORDS = st.text("abc", min_size=1, max_size=9) | st.sampled_from(["é" * 50, "a" * 51, "#", "か"])
COUNTS = st.dictionaries(WORDS, st.integers(1, 6) | st.integers(1, 200), min_size=1, max_size=30)


@laws.examples(50)
@given(COUNTS, st.integers(1, 60))
@example({"ab": 3, "aaa": 2, "abaaa": 2}, 3)  # the last of the four rounds makes a difference
def test_tokens_are_those_of_the_library(counts, size):
    counts = by_frequency(counts)
    assert PieceLearner(counts).within(size) == learned_tokens(counts, size)


def test_rare_characters_are_left_out_like_the_librarys():
    counts = {chr(0xAC00 + n): 2 + n % 7 for n in range(1100)}
    counts = by_frequency({**counts, "ab\uac00": 50, "b\uac63": 9, "a\uac63b": 3})
    for size in (900, 9000):
        assert PieceLearner(counts).within(size) == learned_tokens(counts, size)
