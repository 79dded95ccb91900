"""Property tests of the vocabulary whose size the text decides."""

import collections

import laws
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.text import vocabulary_builder
from nezha_tf.text.vocabulary_builder import VocabularyBuilder

COUNTS = st.integers(1, 9) | st.integers(1, 30_000)
CJK = st.dictionaries(st.sampled_from("一丁七万丈三上下不与丐丑专且世丘丙业"), COUNTS, max_size=18)
WORDS = st.dictionaries(st.text("abcか", min_size=1, max_size=5), COUNTS, max_size=20)


@laws.examples(100)
@given(CJK, WORDS, st.integers(1, 9), st.sampled_from([250, 260, 21_128]))
def test_the_text_decides(monkeypatch, cjk, words, least, most):
    """The rarest characters are left out, as many as there may be, and never more than one in
    2,000; words about as frequent are learned. The same numbers give the same tokens.
    """
    if not cjk and not words:
        return
    monkeypatch.setattr(vocabulary_builder, "MOST_TOKENS", most)
    chosen = VocabularyBuilder(min_character_count=least)
    chosen.add(cjk, words)
    tokens, coverage = chosen.build()
    needed = VocabularyBuilder(10**6, min_character_count=chosen.min_character_count)
    needed.add(cjk, collections.Counter())
    without_words = needed.build()[0] if cjk else tokens
    assert len(tokens) <= chosen.vocab_size <= max(most, len(without_words))

    kept = {char: count for char, count in cjk.items() if count >= chosen.min_character_count}
    assert kept.keys() == cjk.keys() & set(tokens)
    if chosen.min_character_count > least:
        assert coverage.chinese >= 0.9995
        more = sum(count for count in kept.values() if count > chosen.min_character_count)
        assert more < 0.9995 * sum(cjk.values())
    if most == 21_128:
        # The learner's next threshold, and it never learns what is there once.
        enough = max(1.25 * chosen.min_character_count + 1, 2)
        frequent = {word for word, count in words.items() if count >= enough}
        assert frequent <= set(tokens)

    given = VocabularyBuilder(chosen.vocab_size, min_character_count=chosen.min_character_count)
    given.add(cjk, words)
    assert given.build() == (tokens, coverage)
