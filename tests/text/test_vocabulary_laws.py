"""Property tests of building a vocabulary: counts, learned tokens, the size that texts decide."""

import collections
import gzip

import laws
from any_texts import texts
from hypothesis import example, given
from hypothesis import strategies as st
from plain_vocabulary import by_frequency, learned_tokens, token_counts

from nezha_tf.data import corpus
from nezha_tf.text import vocabulary_builder
from nezha_tf.text.piece_learner import PieceLearner
from nezha_tf.text.vocabulary_builder import UnitCounter, VocabularyBuilder, basic_tokens_of


@laws.examples(100)
@given(
    st.lists(st.tuples(texts(max_parts=30), st.booleans()), min_size=1, max_size=3),
    st.integers(1, 40) | st.just(1000),
    st.booleans(),
)
# The lower case of a sigma depends on what stands before it and behind it, punctuation included.
@example([("ΑΣ\u200b.a ΑΣ，Β ΑΣ中Β", False)], 4, True)
@example([("abc" * 9 + " 中" + "d.e" * 9, False)], 5, True)
def test_counts_are_those_of_one_loop_for_any_cut(tmp_path, monkeypatch, files, size, lower):
    monkeypatch.setattr(corpus, "STRETCH_BYTES", size)
    counter, units, paths = UnitCounter(lower), collections.Counter(), []
    for number, (text, is_packed) in enumerate(files):
        path = tmp_path / f"{number}.txt{'.gz' * is_packed}"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if is_packed else data)
        paths.append(str(path))
        stretches = list(corpus.read_stretches(paths[-1]))
        assert b"".join(stretches) == data
        for stretch in stretches:
            for found in counter.count(corpus.decoded(stretch, paths[-1])):
                units.update(found)
    assert basic_tokens_of(units, lower) == token_counts(paths, lower)


# Few letters, so that words share their ends; a word as long as the longest, and a longer one.
FEW_LETTERS = st.text("abc", min_size=1, max_size=9) | st.sampled_from(
    ["é" * 50, "a" * 51, "#", "か"]
)
WORD_COUNTS = st.dictionaries(
    FEW_LETTERS, st.integers(1, 6) | st.integers(1, 200), min_size=1, max_size=30
)


@laws.examples(50)
@given(WORD_COUNTS, st.integers(1, 60))
@example({"ab": 3, "aaa": 2, "abaaa": 2}, 3)  # the last of the four rounds makes a difference
def test_tokens_are_those_of_the_library(counts, size):
    counts = by_frequency(counts)
    assert PieceLearner(counts).within(size) == learned_tokens(counts, size)


def test_rare_characters_are_left_out_like_the_librarys():
    counts = {chr(0xAC00 + n): 2 + n % 7 for n in range(1100)}
    counts = by_frequency({**counts, "ab\uac00": 50, "b\uac63": 9, "a\uac63b": 3})
    for size in (900, 9000):
        assert PieceLearner(counts).within(size) == learned_tokens(counts, size)


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
