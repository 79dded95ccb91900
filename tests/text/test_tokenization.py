"""Both tokenizers against the TF1 original's tokens, and against each other."""

import json
import random

import pytest
import tensorflow as tf

from nezha_tf import FullTokenizer, GraphTokenizer, Vocabulary


@pytest.fixture(scope="module")
def golden_cases(shared_golden):
    return json.loads((shared_golden / "tokenization.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def golden_vocabulary(shared_golden):
    return Vocabulary.from_file(shared_golden / "vocab.txt")


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_golden_strings(golden_cases, golden_vocabulary, do_lower_case):
    cases = [case for case in golden_cases if case["do_lower_case"] == do_lower_case]
    assert len(cases) == 70
    python = FullTokenizer(vocabulary=golden_vocabulary, do_lower_case=do_lower_case)
    graph = GraphTokenizer(golden_vocabulary, do_lower_case)
    in_graph = graph.tokenize(tf.constant([case["text"] for case in cases])).to_list()
    for case, ids in zip(cases, in_graph, strict=True):
        tokens = python.tokenize(case["text"])
        assert tokens == case["tokens"]
        assert python.convert_tokens_to_ids(tokens) == case["ids"]
        assert ids == case["ids"], case["text"]


def odd_strings():
    """Returns strings of all characters that tokenizers treat specially, and long tokens."""
    ranges = ((0x20, 0x250), (0x300, 0x530), (0x2000, 0x2070), (0x3000, 0x3100))
    ranges += ((0x4E00, 0x4E40), (0xFF00, 0xFFF0), (0xAC00, 0xAC10), (0x0E01, 0x0E50))
    alphabet = [chr(code) for low, high in ranges for code in range(low, high)]
    alphabet += list("\0\t\n\r\x1c\x85\xad\u2028\ufeff\ufffd\ue000\U0001f600\U00020001\u302e")
    rng = random.Random(0)
    strings = ["".join(rng.choices(alphabet, k=rng.randint(0, 50))) for _ in range(2000)]
    for char in "aяกか":
        strings += [char * 200, char * 201, char * 300 + "。x", "中" + char * 201 + " " + char]
    return [*strings, "", " ", "中" * 500, "b" * 199 + "é", "b" * 200 + "é", "x" * 5000]


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_offsets_in_the_graph_equal_python(vocabulary, do_lower_case):
    python = FullTokenizer(vocabulary=vocabulary, do_lower_case=do_lower_case)
    graph = GraphTokenizer(vocabulary, do_lower_case)
    # A final sigma, capitals and syllables that become longer, marks that vanish or are reordered.
    more = ["ΟΔΥΣΣΕΥΣ ΑΣ, Σ", "İstanbul ǅ ŉ", "한\u0301\u0301글 e\u0301\u302e\u0323x", "ẞ\u0345ᾳ"]
    strings = [*odd_strings(), *more]
    found = [values.to_list() for values in graph.tokenize_with_offsets(tf.constant(strings))]
    for text, *row in zip(strings, *found, strict=True):
        tokens = python.tokenize_with_offsets(text)
        ids = vocabulary.ids_of(token.text for token in tokens)
        expected = [ids, [p.start for p in tokens], [p.end for p in tokens]]
        assert row == expected, repr(text)


def test_a_token_that_is_there_twice_has_its_last_id_in_both(vocabulary):
    doubled = Vocabulary([*vocabulary.tokens, "的", "##ing"])
    text = "我的training的"
    python = doubled.ids_of(FullTokenizer(vocabulary=doubled).tokenize(text))
    assert python.count(len(vocabulary)) == 2
    assert GraphTokenizer(doubled).tokenize(tf.constant([text])).to_list() == [python]


def test_graph_tokenizer_in_a_pipeline(vocabulary):
    """The exports of `tests/serving` hold it in a SavedModel."""
    graph = GraphTokenizer(vocabulary)
    texts = ["今天天气不错，Running！", "ＮＢＡ　２０２３"]
    mapped = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(graph.tokenize)
    assert next(iter(mapped)).to_list() == graph.tokenize(tf.constant(texts)).to_list()


def test_offsets_of_a_character_that_folding_widens_beside_one_that_it_drops():
    # A syllable of three letters, and two accents: five characters become three.
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ᄒᆫx", "##ᅡ", "##ᆫ"])
    tokens = FullTokenizer(vocabulary=vocabulary).tokenize_with_offsets("x 한\u0301\u0301")
    assert [(p.text, p.start, p.end) for p in tokens] == [
        ("x", 0, 1),
        ("ᄒ", 2, 3),
        ("##ᅡ", 2, 3),
        ("##ᆫ", 2, 3),
    ]
