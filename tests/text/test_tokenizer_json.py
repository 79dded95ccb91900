"""Our `tokenizer.json`, read by Hugging Face's libraries, gives the ids of `FullTokenizer`."""

import json
import re

import pytest
from any_texts import PARTS, odd_strings

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.text.characters import fold
from nezha_tf.text.tokenizer_json import tokenizer_json
from nezha_tf.text.vocabulary import SPECIAL_TOKENS

# What is cut otherwise there, as tokenizer_json.py says: text, our tokens, theirs.
OTHERWISE = (
    ("[MASK]", ["[", "mask", "]"], ["[MASK]"]),
    ("\ue000", ["[UNK]"], []),
    ("ΑΣ", ["α", "##ς"], ["α", "##σ"]),
    ("𫠠a", ["𫠠", "a"], ["𫠠", "##a"]),
    ("a\u2e43", ["a", "\u2e43"], ["a", "##\u2e43"]),
)
TEXTS = [*odd_strings(), *PARTS, "한\u0301\u0301글 e\u0301\u302e\u0323x", "İstanbul ǅ ŉ K"]
SAME = [re.sub("[Σ\ue000]", "", text) for text in TEXTS if text not in SPECIAL_TOKENS]


@pytest.fixture(scope="module")
def every_letter(vocabulary):
    """A vocabulary in which no character of the texts is [UNK]."""
    text = "".join([*SAME, *(text for text, *_ in OTHERWISE[2:])])
    letters = sorted({letter for char in {*text} for letter in (char, *fold(char))} - {*" \0"})
    tokens = [*vocabulary.tokens, *letters, *(f"##{letter}" for letter in letters), "##ς"]
    return Vocabulary(dict.fromkeys(tokens))


@pytest.fixture
def theirs():
    """Returns a function: contents of a tokenizer.json -> tokenizer of Hugging Face's library."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install -e '.[transformers]'")
    return lambda contents: tokenizers.Tokenizer.from_str(json.dumps(contents))


@pytest.mark.parametrize("do_lower_case", (True, False))
def test_the_library_cuts_odd_texts_alike(theirs, every_letter, do_lower_case):
    ours = FullTokenizer(vocabulary=every_letter, do_lower_case=do_lower_case)
    theirs = theirs(tokenizer_json(every_letter, do_lower_case))
    encoded = theirs.encode_batch(SAME, add_special_tokens=False)
    for text, found in zip(SAME, encoded, strict=True):
        tokens = ours.tokenize_with_offsets(text)
        assert found.ids == every_letter.ids_of(token.text for token in tokens), repr(text)


def test_what_the_library_cuts_otherwise(theirs, every_letter):
    ours = FullTokenizer(vocabulary=every_letter)
    theirs = theirs(tokenizer_json(every_letter, True))
    for text, here, there in OTHERWISE:
        assert ours.tokenize(text) == here, text
        assert theirs.encode(text, add_special_tokens=False).tokens == there, text


def test_special_tokens_and_segments(theirs, vocabulary):
    doubled = Vocabulary([*vocabulary.tokens, "的"])  # the last one counts
    theirs = theirs(tokenizer_json(doubled, True))
    found = theirs.encode("我的", "你")
    assert found.tokens == ["[CLS]", "我", "的", "[SEP]", "你", "[SEP]"]
    assert found.ids == doubled.ids_of(found.tokens) and found.ids[2] == len(vocabulary)
    assert found.type_ids == [0, 0, 0, 0, 1, 1]
    assert theirs.decode(found.ids) == "我 的 你"
