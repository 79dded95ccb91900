"""Texts of ids in the graph equal `detokenize` without a source."""

import random

import pytest
import tensorflow as tf
from natural_texts import NATURAL, cased_tokenizer

from nezha_tf import Vocabulary
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.graph_detokenizer import GraphDetokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "", "##"]
PIECES += [*"中国，。《", *"ab3Z.,:;\"'()[$-/@%!?é℃", "ab", "Ab", "3.5", "a.", "ー", "😀"]
PIECES += ["##a", "##3", "##中", "##.", '##"', "##(", "##B,"]


def graph_texts(vocabulary, rows):
    """Returns the texts of lists of ids, padded to one length."""
    graph = tf.function(GraphDetokenizer(vocabulary).detokenize)
    longest = max(map(len, rows), default=0)
    ids = [row + [vocabulary.pad_id] * (longest - len(row)) for row in rows]
    ids = tf.constant(ids, tf.int32, shape=(len(rows), longest))
    return [text.decode() for text in graph(ids).numpy()]


def test_random_pieces():
    """Pieces of all kinds, so that rare combinations of rules occur."""
    vocabulary = Vocabulary(PIECES)
    rng = random.Random(3)
    rows = [rng.choices(range(len(PIECES)), k=rng.randrange(14)) for _ in range(6000)]
    # Chinese ends most effects of rules, so half of the rows have no Chinese and no special pieces.
    latin = [index for index, piece in enumerate(PIECES) if piece.isascii() and index > 7]
    rows += [rng.choices(latin, k=rng.randrange(14)) for _ in range(6000)]
    expected = [detokenize(vocabulary.pieces_of(row)) for row in rows]
    assert graph_texts(vocabulary, rows) == expected
    assert sum(" " in text for text in expected) > 3000


@pytest.mark.parametrize("rows", ([], [[]], [[], [0, 0]], [[1, 5]]))
def test_nothing_is_written(rows):
    assert graph_texts(Vocabulary(PIECES), rows) == [""] * len(rows)


def test_natural_text_comes_back():
    cased = cased_tokenizer()
    vocabulary = cased.vocabulary
    rows = [vocabulary.ids_of(cased.tokenize(text)) for text in NATURAL]
    assert graph_texts(vocabulary, rows) == list(NATURAL)
