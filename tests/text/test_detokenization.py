"""Natural text from tokens: it equals the tokenized text; unknown words come from the source."""

import re

import pytest
import tensorflow as tf
from conftest import RESOURCES
from natural_texts import NATURAL, cased_tokenizer

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.data.squad import read_questions
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.graph_detokenizer import GraphDetokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return FullTokenizer(RESOURCES / "vocab.txt")


@pytest.fixture(scope="module")
def cased():
    return cased_tokenizer()


@pytest.mark.parametrize("text", NATURAL)
def test_natural_text_comes_back_without_a_source(text, cased):
    assert detokenize(cased.tokenize(text)) == text


def test_natural_text_comes_back_in_the_graph(cased):
    """Inside a function, in rows that are padded to one length."""
    vocabulary = cased.vocabulary
    graph = tf.function(GraphDetokenizer(vocabulary).detokenize)
    ids = tf.ragged.constant([vocabulary.ids_of(cased.tokenize(text)) for text in NATURAL])
    texts = graph(ids.to_tensor(vocabulary.pad_id))
    assert [text.decode() for text in texts.numpy()] == list(NATURAL)


@pytest.mark.parametrize("text", NATURAL)
def test_case_comes_back_with_a_source(text, tokenizer):
    assert detokenize(tokenizer.tokenize(text), f"前文。{text}", tokenizer) == text


def test_the_bundled_corpus_comes_back(tokenizer):
    """The whole text up to white space; exactly, except for spaces beside Chinese."""
    text = (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        tokens = tokenizer.tokenize(line)
        beside_latin_only = re.sub(r"(?<![!-~]) | (?![!-~])", "", line)
        assert detokenize(tokens, line, tokenizer) == beside_latin_only
        assert detokenize(tokens) == beside_latin_only.lower()
    exact = sum(detokenize(tokenizer.tokenize(line), line, tokenizer) == line for line in lines)
    assert exact > 0.98 * len(lines)


def test_questions_about_a_text_come_back_from_it(shared_golden, shared_data):
    tokenizer = FullTokenizer(shared_golden / "vocab.txt")
    questions = list(read_questions([shared_data / "cmrc2018" / "dev.json"]))[::5]
    pairs = [(question.text.strip(), question.context) for question in questions]
    exact = sum(detokenize(tokenizer.tokenize(q), c, tokenizer) == q for q, c in pairs)
    assert exact > 0.99 * len(pairs)


def test_special_tokens_and_marks_of_inner_tokens_are_dropped():
    tokens = ["[CLS]", "##中", "国", "[MASK]", "ab", "##c", "[unused7]", "de", "[SEP]", "[PAD]"]
    assert detokenize(tokens) == "中国abc de"
    assert detokenize(["##", "#", ""]) == "###"
    assert detokenize([]) == "" == detokenize(["[PAD]"], "源", _tiny("源"))


def _tiny(known):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]
    return FullTokenizer(vocabulary=Vocabulary(tokens))


def test_an_unknown_token_is_what_its_neighbours_say():
    tokenizer = _tiny("张李王先生说好，。")
    source = "张犇先生说好，李骉先生说好，王😀😀说好。"
    assert tokenizer.tokenize(source).count("[UNK]") == 3
    for text in ("李骉先生说好。", "王😀😀说，张犇先生说。", "李骉说李骉好"):
        assert detokenize(tokenizer.tokenize(text), source, tokenizer) == text
    # No neighbour agrees: they are used in order, and again from the first one.
    unknown = ["[UNK]", "。"] * 4
    assert detokenize(unknown[:6], source, tokenizer) == "犇。骉。😀😀。"
    assert detokenize(["[UNK]"] * 4, "犇。骉", tokenizer) in ("犇骉犇犇", "犇骉犇骉")


def test_an_unknown_token_that_nothing_fits_stays_out():
    tokenizer = _tiny("张先生说好")
    assert detokenize(["张", "[UNK]", "说"]) == "张说"
    assert detokenize(["张", "[UNK]", "说"], "张先生说好", tokenizer) == "张说"


def test_a_word_is_written_as_the_source_mostly_does(tokenizer):
    source = "GitHub上的github和GitHub，还有 Café。"
    assert detokenize(["github", "cafe"], source, tokenizer) == "GitHub Café"


def test_the_source_decides_on_spaces_about_punctuation(tokenizer):
    assert detokenize(tokenizer.tokenize("a & b"), "问 A & B 和C&D", tokenizer) == "A & B"
    assert detokenize(tokenizer.tokenize("c&d"), "问 A & B 和C&D", tokenizer) == "C&D"
