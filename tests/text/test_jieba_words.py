"""The words of many lines at a time are those of jieba for each line, whatever the text is."""

import contextlib
import itertools

import jieba
import jieba.finalseg
import laws
import numpy as np
import pytest
from any_texts import texts
from conftest import RESOURCES
from hypothesis import example, given
from hypothesis import strategies as st

from nezha_tf.text import jieba_words, name_model
from nezha_tf.text.jieba_words import JiebaWords
from nezha_tf.text.name_model import NameModel
from nezha_tf.text.word_trie import WordTrie
from nezha_tf.text.words import make_segmenter

COMMON = "一不中了二人以你做全再到前力北华合同国在地大天夫女好学家小山工市张明是来林海王的英高"
IDEOGRAPHS = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5)
SIGNS = "我的aZ09.%+#&-_ \t\r\n，。😀é\ud800\u2028\x85\x1c㐀\u9fd6𠮷"
TEXTS = st.lists(
    st.text(COMMON, max_size=30)
    | st.text(IDEOGRAPHS, max_size=12)
    | st.text("aB19.%-+", max_size=12)
    | st.text(SIGNS, max_size=12)
    | texts(),
    max_size=4,
).map("".join)
WORDS = st.text(COMMON, min_size=1, max_size=6) | st.text(COMMON + "aB1.· ", min_size=1, max_size=4)


@contextlib.contextmanager
def limits(draw):
    """Small ones, so that short texts, too, are parted, and end in loops over single characters."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jieba_words, "_AT_ONCE", draw(st.sampled_from([1, 9, 1 << 16])))
        patched.setattr(jieba_words, "_STEPS_TOGETHER", draw(st.sampled_from([1, 3, 512])))
        patched.setattr(jieba_words, "_FEW_BLOCKS", draw(st.sampled_from([1, 2, 16])))
        patched.setattr(name_model, "_LONGEST_TOGETHER", draw(st.sampled_from([1, 3, 512])))
        yield


def starts_of(lines, cut):
    """Returns a list of the starts of words, for any function that cuts a line into words."""
    starts = []
    for line in lines:
        for word in [*cut(line), "\n"]:
            starts += [True] + [False] * (len(word) - 1)
    return starts


@laws.examples(400)
@given(lines=st.lists(TEXTS, max_size=6), data=st.data())
# The model's most probable path can begin in the middle of a word.
@example(lines=["嬿円", "在嶌咲，嬿円龘", "\r", "\n"], data=None)
def test_starts_are_those_of_jieba_for_each_line(lines, data):
    segmenter = make_segmenter("jieba")
    with limits(data.draw) if data else contextlib.nullcontext():
        starts = segmenter.starts(lines)
    assert starts.dtype == bool and starts.tolist() == starts_of(lines, jieba.lcut)
    for line in lines:
        words = segmenter(line)
        assert words == jieba.lcut(line) and "".join(words) == line


@laws.examples(200)
@given(
    words=st.lists(st.tuples(WORDS, st.none() | st.just(0) | st.integers(0, 10**6)), max_size=8),
    lines=st.lists(st.text(COMMON, max_size=40) | TEXTS, max_size=4),
    data=st.data(),
)
def test_starts_with_any_words_of_the_user_are_those_of_jieba(words, lines, data):
    theirs = jieba.Tokenizer()
    jieba.initialize()
    # Names of the model, which must not be found.
    names = {w for line in lines for w in jieba.lcut(line) if not jieba.dt.FREQ.get(w)}
    words = words + [
        (name, 0) for name in sorted(names) if name.strip() and data.draw(st.booleans())
    ]
    changed = {text[:end] for text, _ in words for end in range(1, len(text) + 1)}
    theirs.FREQ, theirs.total, theirs.initialized = jieba.dt.FREQ, jieba.dt.total, True
    before = {text: theirs.FREQ.get(text) for text in changed}
    lines = [*lines, *(text for text, _ in words), "".join(text for text, _ in words)]
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(jieba.finalseg, "Force_Split_Words", set())
            for word in words:
                theirs.add_word(*word)
            never = [text for text, frequency in words if frequency == 0]
            expected = starts_of(lines, theirs.lcut)
        # The dictionary of the words that are in these lines does for them.
        found = {
            line[a:b] for line in lines for a, b in itertools.combinations(range(len(line) + 1), 2)
        }
        frequencies = {text: theirs.FREQ[text] for text in found if text in theirs.FREQ}
        ours = JiebaWords(frequencies, theirs.total, never)
    finally:
        for text, frequency in before.items():
            if frequency is None:
                theirs.FREQ.pop(text, None)
            else:
                theirs.FREQ[text] = frequency
    with limits(data.draw):
        assert ours.starts(lines).tolist() == expected


def test_long_blocks_are_cut_as_by_jieba():
    """Longer than what goes together: alone, beside short ones, and many of them."""
    text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
    block = "".join(filter("\u4e00".__le__, text)).replace("，", "")
    block = "".join(char for char in block if "\u4e00" <= char <= "\u9fd5")[:3000]
    names = "".join(sorted(set(block)))[:700]  # few words, one after another
    assert len(block) == 3000 and len(names) > 600
    segmenter = make_segmenter("jieba")
    for lines in ([block], [block, "短", names], [block[i:] + names for i in range(20)]):
        assert segmenter.starts(lines).tolist() == starts_of(lines, jieba.lcut)


@laws.examples(100)
@given(
    words=st.sets(st.text("甲乙丙丁", min_size=1, max_size=7), max_size=60),
    text=st.text("甲乙丙丁 ", max_size=40),
)
def test_the_trie_finds_all_words_at_all_places(words, text):
    numbers = {char: number for number, char in enumerate(" 甲乙丙丁")}
    words = sorted(words)
    characters = np.array([numbers[char] for word in words for char in word], np.uint16)
    lengths = np.array([len(word) for word in words], np.int64)
    trie = WordTrie(characters, lengths, np.arange(len(words)) - 5.0, most=4)
    found = {}
    for length, places, scores in trie.find(np.array([numbers[c] for c in text + " "], np.uint16)):
        for place, score in zip(places.tolist(), scores.tolist(), strict=True):
            found[text[place : place + length], place] = score
    pairs = itertools.combinations(range(len(text) + 1), 2)
    expected = {
        (text[a:b], a): words.index(text[a:b]) - 5.0 for a, b in pairs if text[a:b] in words
    }
    assert found == {key: score for key, score in expected.items() if len(key[0]) > 1}
    singles = [words.index(c) - 5.0 if c in words else -np.inf for c in "甲乙丙丁"]
    assert trie.single_scores[1:].tolist() == singles


@laws.examples(100)
@given(runs=st.lists(st.text(IDEOGRAPHS, min_size=1, max_size=12), min_size=1, max_size=8))
def test_names_of_runs_are_those_of_jieba(runs):
    ideographs = np.array([ord(char) - name_model.FIRST for char in "".join(runs)])
    starts = NameModel().word_starts(ideographs, np.array(list(map(len, runs))))
    expected = [len(word) for run in runs for word in jieba.finalseg.cut(run)]
    ends = np.append(np.flatnonzero(starts)[1:], len(starts))
    assert np.diff(ends, prepend=0).tolist() == expected
