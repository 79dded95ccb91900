"""Property tests of segmentation: jieba's words for any text and dictionary."""

import io
import itertools
import math

import jieba
import laws
import pytest
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf.text.jieba_words import JiebaWords
from nezha_tf.text.user_dictionary import UserWord
from nezha_tf.text.word_segmentation import make_segmenter, read_frequencies

# Ideographs of jieba's block and others, common and rare, and characters with special rules.
LETTERS = "我来到北京清华大学的了𠮷龘龖靐㐀\u9fd5\u9fd6aZ09.%+#&-_ \t\r\n，😀é\u2028\x85\x1c"


@pytest.fixture(scope="module")
def segmenters():
    return {name: make_segmenter(name) for name in ("jieba", "rjieba")}


IDEOGRAPHS = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5)
COMMON = "一不中了二人以你做全再到前力北华合同国在地大天夫女好学家小山工市张明是来林海王的英高"


@laws.examples(400)
@given(
    text=st.text(COMMON, max_size=30)
    | st.text(IDEOGRAPHS, max_size=20)
    | st.text(LETTERS, max_size=40)
    | texts()
)
def test_words_are_those_of_jieba(segmenters, text):
    assert segmenters["jieba"](text) == jieba.lcut(text)


@laws.examples(200)
@given(name=st.sampled_from(("jieba", "rjieba")), text=st.text(LETTERS) | texts())
def test_words_joined_are_the_text(segmenters, name, text):
    words = segmenters[name](text)
    assert "".join(words) == text and "" not in words


WORDS = st.text("甲乙丙丁aB1", min_size=1, max_size=4)
ENTRIES = st.lists(st.tuples(WORDS, st.integers(0, 10**9)), min_size=1, max_size=15)
# Most words of two letters, with equal frequencies: several paths have the same probability.
SHORT = ["".join(word) for n in (1, 2, 3) for word in itertools.product("甲乙", repeat=n)]
EQUAL = st.sets(st.sampled_from(SHORT), min_size=6).map(
    lambda found: [(w, 7) for w in sorted(found)]
)


@laws.examples(200)
@given(entries=ENTRIES)
def test_a_dictionary_is_read_as_jieba_reads_it(entries):
    content = "".join(f"{word} {count} n\n" for word, count in entries).encode()
    theirs = io.BytesIO(content)
    theirs.name = "dictionary.txt"
    expected = jieba.Tokenizer().gen_pfdict(theirs)
    assert read_frequencies(io.BytesIO(content)) == expected


@laws.examples(300)
@given(
    entries=ENTRIES | EQUAL,
    words=st.lists(st.builds(UserWord, WORDS, st.none() | st.integers(0, 10**6)), max_size=4),
    text=st.text("甲乙丙丁aB1 。龘", max_size=30) | st.text("甲乙", max_size=12),
)
def test_words_of_any_dictionary_are_those_of_jieba(entries, words, text):
    """Few letters, so that words overlap and have common beginnings."""
    content = "".join(f"{word} {count} n\n" for word, count in entries).encode()
    theirs = jieba.Tokenizer()
    theirs.FREQ, theirs.total = read_frequencies(io.BytesIO(content))
    theirs.total = max(theirs.total, math.e)  # jieba takes its logarithm
    theirs.initialized = True
    for word in words:
        theirs.add_word(*word)
    assert JiebaWords(theirs).cut(text) == theirs.lcut(text)
