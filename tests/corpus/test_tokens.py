"""Tokens, words and sentences of a shard against the tokenizer and segmenter for one line."""

import itertools

import jieba
import numpy as np
from conftest import RESOURCES

from nezha_tf import FullTokenizer
from nezha_tf.corpus import tokens as tokens_module
from nezha_tf.corpus.settings import Settings
from nezha_tf.corpus.tokens import TokenReader
from nezha_tf.data.corpus import read_documents

ODD = [
    (100, ["\u200b", "我在 unbelievableness 的 131888公里", "", "\x00"]),
    (103, ["\u200b\u200d", " "]),
    (104, ["ΑΣ.Α é각\u0301去cafétéria吃饭", "\U0001f600龘，"]),
]


def reader(vocabulary, **settings):
    return TokenReader(Settings(vocab_file="", **settings), vocabulary)


def words_of_characters(text, cut):
    return [number for number, word in enumerate(cut(text)) for _ in word]


def expected_line(text, vocabulary, cut):
    """Returns (ids, whether each begins a word) of a line, by the rule, token after token."""
    tokens = FullTokenizer(vocabulary=vocabulary).tokenize_with_offsets(text)
    words = words_of_characters(text, cut)
    starts, basic_token, word = [], None, None
    for token in tokens:
        is_next = token.basic_token != basic_token
        starts.append(is_next and words[token.start] != word)
        if is_next:
            basic_token, word = token.basic_token, words[token.start]
    return vocabulary.ids_of([token.text for token in tokens]), starts


def check(documents, found, vocabulary, cut):
    expected = []
    for number, lines in documents:
        sentences = [expected_line(line, vocabulary, cut) for line in lines]
        if any(ids for ids, _ in sentences):
            expected.append((number, [sentence for sentence in sentences if sentence[0]]))
    assert [number for number, _, _ in found.documents] == [number for number, _ in expected]
    place = 0
    for (_, sentences), (_, first, last) in zip(expected, found.documents, strict=True):
        assert len(sentences) == last - first
        for (ids, starts), sentence in zip(sentences, range(first, last), strict=True):
            assert found.bounds[sentence] == place
            place = found.bounds[sentence + 1]
            assert found.ids[found.bounds[sentence] : place].tolist() == ids
            assert found.word_starts[found.bounds[sentence] : place].tolist() == starts
    assert place == len(found.ids) == len(found.word_starts)
    assert found.characters == sum(len(line) for _, lines in documents for line in lines)


def test_tokens_and_words_are_those_of_each_line(vocabulary, monkeypatch):
    documents = list(enumerate(read_documents(str(RESOURCES / "sample_corpus.txt")))) + ODD
    found = reader(vocabulary).read(documents)
    check(documents, found, vocabulary, jieba.lcut)
    # The same in small parts.
    monkeypatch.setattr(tokens_module, "CHARACTERS_AT_ONCE", 50)
    in_parts = reader(vocabulary).read(documents)
    assert in_parts.bounds == found.bounds and in_parts.documents == found.documents
    assert (in_parts.ids == found.ids).all() and (in_parts.word_starts == found.word_starts).all()
    assert in_parts.unknown_characters == found.unknown_characters
    assert found.unknown_characters["\U0001f600"] == found.unknown_characters["龘"] == 1


def test_without_words_each_token_is_a_unit(vocabulary, monkeypatch):
    monkeypatch.setattr(tokens_module, "make_segmenter", None)  # and nothing is segmented
    found = reader(vocabulary, masking="token").read(ODD)
    assert found.word_starts.all() and len(found.ids) > 20


def test_entities_are_words_whatever_the_segmenter_says(vocabulary, tmp_path):
    text = "工程师通过传感器收集温度和振动数据，效率提高了很多。"
    assert jieba.lcut(text)[:4] == ["工程师", "通过", "传感器", "收集"]
    path = tmp_path / "words.txt"
    path.write_text("程师通 1\n振动数据\n集温度和 1\n", encoding="utf-8")
    for masking in ("entity", "none"):
        settings = {"masking": masking, "user_dict": str(path)}
        found = reader(vocabulary, **settings).read([(0, [text, text])])
        starts = found.word_starts.reshape(2, -1)
        assert len(found.ids) == 2 * len(text) and (starts[0] == starts[1]).all()
        places = [*np.flatnonzero(starts[0]).tolist(), len(text)]
        words = [text[start:end] for start, end in itertools.pairwise(places)]
        assert words[:7] == ["工", "程师通", "过", "传感器", "收", "集温度和", "振动数据"]
