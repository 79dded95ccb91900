"""Texts of ids in the graph equal `detokenize` without a source."""

import random

import pytest
import tensorflow as tf
from natural_texts import NATURAL, cased_tokenizer

from nezha_tf import Vocabulary
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.graph_detokenizer import GraphDetokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "", "##"]
TOKENS += [*"中国，。《", *"ab3Z.,:;\"'()[$-/@%!?é℃", "ab", "Ab", "3.5", "a.", "ー", "😀"]
TOKENS += ["##a", "##3", "##中", "##.", '##"', "##(", "##B,"]


def graph_texts(vocabulary, rows):
    """Returns the texts of lists of ids, padded to one length."""
    graph = tf.function(GraphDetokenizer(vocabulary).detokenize)
    longest = max(map(len, rows), default=0)
    ids = [row + [vocabulary.pad_id] * (longest - len(row)) for row in rows]
    ids = tf.constant(ids, tf.int32, shape=(len(rows), longest))
    return [text.decode() for text in graph(ids).numpy()]


def test_random_tokens():
    """Tokens of all kinds, so that rare combinations of rules occur."""
    vocabulary = Vocabulary(TOKENS)
    rng = random.Random(3)
    rows = [rng.choices(range(len(TOKENS)), k=rng.randrange(14)) for _ in range(6000)]
    # Chinese ends most effects of rules, so half of the rows have no Chinese and no special tokens.
    latin = [index for index, token in enumerate(TOKENS) if token.isascii() and index > 7]
    rows += [rng.choices(latin, k=rng.randrange(14)) for _ in range(6000)]
    expected = [detokenize(vocabulary.tokens_of(row)) for row in rows]
    assert graph_texts(vocabulary, rows) == expected
    assert sum(" " in text for text in expected) > 3000


@pytest.mark.parametrize("rows", ([], [[]], [[], [0, 0]], [[1, 5]]))
def test_nothing_is_written(rows):
    assert graph_texts(Vocabulary(TOKENS), rows) == [""] * len(rows)


def test_natural_text_comes_back():
    cased = cased_tokenizer()
    vocabulary = cased.vocabulary
    rows = [vocabulary.ids_of(cased.tokenize(text)) for text in NATURAL]
    assert graph_texts(vocabulary, rows) == list(NATURAL)
