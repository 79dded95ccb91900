"""The tokenizer for many lines against the tokenizer for one line."""

import collections
import random
import time

import pytest
from conftest import RESOURCES

from nezha_tf import FullTokenizer
from nezha_tf.text.bulk_tokenizer import BulkTokenizer


@pytest.fixture(scope="module")
def sentences():
    return (RESOURCES / "sample_corpus.txt").read_text(encoding="utf-8").split("\n")


def odd_lines():
    """Returns lines of all kinds of characters in random order, and of characters that interact."""
    ranges = ((0x20, 0x250), (0x300, 0x530), (0x1F00, 0x2070), (0x3000, 0x3100))
    ranges += ((0x4E00, 0x4E40), (0xF900, 0xF920), (0xFF00, 0xFFF0), (0xAC00, 0xAC10))
    alphabet = [chr(code) for low, high in ranges for code in range(low, high)]
    alphabet += list("\0\t\r\x1c\x85\xad\u2028\ufeff\ufffd\ue000\U0001f600\U00020001\u302e")
    rng = random.Random(0)
    lines = ["".join(rng.choices(alphabet, k=rng.randint(0, 40))) for _ in range(1500)]
    few = list("ΑΣσ.'·,中 é각\u0301\u0316\u302e\u200b\u037e`")
    lines += ["".join(rng.choices(few, k=rng.randint(1, 12))) for _ in range(1500)]
    return [*lines, "", " ", "x" * 250 + "。" + "y" * 200, "中" * 300, "a\u200bb c\x00"]


def check(lines, tokenizer):
    found = BulkTokenizer(tokenizer).tokenize(lines)
    first = offset = 0
    for line, end in zip(lines, found.line_ends.tolist(), strict=True):
        expected = tokenizer.tokenize_with_offsets(line)
        ids = tokenizer.convert_tokens_to_ids([token.text for token in expected])
        assert found.ids[first:end].tolist() == ids, repr(line)
        places = found.places[first:end] - offset
        assert places.tolist() == [token.start for token in expected], repr(line)
        basic_tokens = [token.basic_token for token in expected]
        begins = [
            n == 0 or basic_tokens[n] != basic_tokens[n - 1] for n in range(len(basic_tokens))
        ]
        assert found.begins_basic_token[first:end].tolist() == begins, repr(line)
        first, offset = end, offset + len(line) + 1
    assert first == len(found.ids) == len(found.places) == len(found.begins_basic_token)


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_tokens_are_those_of_the_tokenizer_of_a_line(vocabulary, sentences, do_lower_case):
    tokenizer = FullTokenizer(vocabulary=vocabulary, do_lower_case=do_lower_case)
    check(sentences, tokenizer)
    check(odd_lines(), tokenizer)
    check([], tokenizer)
    check([""], tokenizer)
    check(["\x00", "", "中"], tokenizer)


def test_it_pays(vocabulary, sentences):
    tokenizer, bulk = (
        FullTokenizer(vocabulary=vocabulary),
        BulkTokenizer(FullTokenizer(vocabulary=vocabulary)),
    )

    def seconds(function):
        started = time.process_time()
        function()
        return time.process_time() - started

    lines = sentences * 5
    slow = min(seconds(lambda: [tokenizer.tokenize_with_offsets(s) for s in lines]) for _ in "ab")
    fast = min(seconds(lambda: bulk.tokenize(lines)) for _ in "ab")
    assert fast < slow / 4


def test_unknown_characters_are_counted(vocabulary):
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    bulk = BulkTokenizer(tokenizer)
    ids = bulk.tokenize(["我\U0001f600爱\u9f98龘，kanΩ", "龘 \U0001f600\U0001f601", "a" * 201]).ids
    unknown = vocabulary.ids_of(["[UNK]"])[0]
    assert "龘" not in vocabulary and "ω" not in vocabulary
    expected = collections.Counter({"\U0001f600": 2, "龘": 3, "\U0001f601": 1, "Ω": 1})
    assert bulk.unknown_characters == expected
    assert (ids == unknown).sum() == 1 + 2 + 1 + 1 + 1 + 1
