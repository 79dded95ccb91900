"""Packed pairs against the Python tokenizer and results by hand."""

import random

import pytest
from conftest import RESOURCES

from nezha_tf import FullTokenizer
from nezha_tf.data.rows import Row
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.text.graph_tokenizer import TOKENIZED_AT_ONCE
from nezha_tf.util.errors import UserError


@pytest.fixture(scope="module")
def tokenizer():
    return FullTokenizer(RESOURCES / "vocab.txt")


def rows(*pairs):
    return [
        Row({"src": pair[0], **({"tgt": pair[1]} if len(pair) > 1 else {})}, "pairs.tsv", number)
        for number, pair in enumerate(pairs, start=1)
    ]


def tokens(tokenizer, ids):
    return tokenizer.convert_ids_to_tokens(ids.tolist())


def test_a_pair_is_packed(tokenizer):
    pairs = Packing(tokenizer, 16, 8).pack(rows(("今天天气", "很好"), ("明天",)))
    assert tokens(tokenizer, pairs.ids[0]) == [*"[CLS] 今 天 天 气 [SEP] 很 好 [SEP]".split()]
    assert tokens(tokenizer, pairs.ids[1]) == [*"[CLS] 明 天 [SEP]".split()]
    assert pairs.target_starts == [6, 4] and len(pairs) == 2
    assert pairs.truncated == {"source": 0, "target": 0}
    assert Packing(tokenizer, 16, 8).max_seq_length == 24


@pytest.mark.parametrize("source_end", ("tail", "head"))
@pytest.mark.parametrize("target_end", ("tail", "head"))
def test_each_side_is_cut_at_its_end(tokenizer, source_end, target_end):
    packing = Packing(tokenizer, 5, 3, source_end, target_end)
    pairs = packing.pack(rows(("一二三", "四五"), ("一二三四", "五六七"), ("一二", "三四五六")))
    kept = {"tail": ("一二三", "五六", "三四"), "head": ("二三四", "六七", "五六")}
    for ids, source, target in (
        (pairs.ids[0], "一二三", "四五"),
        (pairs.ids[1], kept[source_end][0], kept[target_end][1]),
        (pairs.ids[2], "一二", kept[target_end][2]),
    ):
        assert tokens(tokenizer, ids) == ["[CLS]", *source, "[SEP]", *target, "[SEP]"]
    assert pairs.truncated == {"source": 1, "target": 2}


def test_many_pairs_are_as_the_python_tokenizer_has_them(tokenizer):
    rng = random.Random(1)
    alphabet = "今天 Tensor flow,，3.5龘é\t"
    texts = ["".join(rng.choices(alphabet, k=9)) + "天" for _ in range(2 * TOKENIZED_AT_ONCE + 6)]
    examples = list(zip(texts[0::2], texts[1::2], strict=True))
    pairs = Packing(tokenizer, 64, 64).pack(rows(*examples))
    for (source, target), ids in zip(examples, pairs.ids, strict=True):
        expected = ["[CLS]", *tokenizer.tokenize(source), "[SEP]"]
        expected += [*tokenizer.tokenize(target), "[SEP]"]
        assert tokens(tokenizer, ids) == expected


def test_lengths_without_room_and_texts_without_tokens(tokenizer):
    for lengths, message in (
        ((2, 8), r"--max_source_length=2 leaves no room .* at least 3"),
        ((8, 1), r"--max_target_length=1 leaves no room .* at least 2"),
    ):
        with pytest.raises(UserError, match=message):
            Packing(tokenizer, *lengths)
    with pytest.raises(UserError, match=r"pairs\.tsv, line 2: tgt has no tokens"):
        Packing(tokenizer, 8, 8).pack(rows(("一", "二"), ("一", "\u200b\x01")))
