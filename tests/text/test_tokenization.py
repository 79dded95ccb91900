"""Both tokenizers against the TF1 original's tokens, and against each other."""

import json

import pytest
import tensorflow as tf
from any_texts import odd_strings

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
    texts = ["今天天气不错，Running！", "ＮＢＡ　２０２３", "x" * 201, ""]
    expected = graph.tokenize(tf.constant(texts)).to_list()
    data = tf.data.Dataset.from_tensor_slices(texts)
    assert next(iter(data.batch(4).map(graph.tokenize))).to_list() == expected
    one_by_one = data.map(graph.tokenize)
    assert one_by_one.element_spec == tf.TensorSpec([None], tf.int32)
    assert [ids.tolist() for ids in one_by_one.as_numpy_iterator()] == expected


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
