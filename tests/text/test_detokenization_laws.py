"""Property tests of detokenization: the same result in Python and in the graph, and round trips."""

import itertools

import laws
import pytest
import tensorflow as tf
from any_texts import PARTS, texts
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer, Vocabulary
from nezha_tf.text import characters
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.graph_detokenizer import GraphDetokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, UNK

CASES = pytest.mark.parametrize("do_lower_case", (True, False))
WIDE = "，。、；：？！“”‘’（）《》…—"


@pytest.fixture(scope="module")
def tokenizers(vocabulary):
    cases = (True, False)
    return {case: FullTokenizer(vocabulary=vocabulary, do_lower_case=case) for case in cases}


@pytest.fixture(scope="module")
def chinese(vocabulary):
    """Returns the characters of the vocabulary that are written without spaces."""
    tokens = [token for token in vocabulary.tokens if len(token) == 1]
    return [c for c in tokens if characters.kind_of(c) == characters.ALONE or c in WIDE]


# Words, numbers, and everything with special rules beside them; and any text.
FEW = ['"', ".", "(", ",", "a", "Ab", "3", "##a", "##3", "##.", "中", "-", "é"]
MORE = st.sampled_from([*"，。《bZ:;')[$/@%!?℃", "3.5", "a.", '##"', "##中", "##Bc", *PARTS])
TOKENS = st.sampled_from(FEW) | MORE | st.text(max_size=3)


@laws.examples(70)
@given(st.data())
def test_the_graph_writes_what_python_does(data):
    tokens = data.draw(st.just(FEW) | st.lists(TOKENS, max_size=9))
    vocabulary = Vocabulary(dict.fromkeys([*SPECIAL_TOKENS, *tokens]))
    often = vocabulary.ids_of([UNK, '"', '"', "a", "a"])
    ids = st.sampled_from([*range(len(vocabulary)), *range(5, len(vocabulary)), *often])
    length = data.draw(st.integers(0, 9))
    row = st.lists(ids, min_size=length, max_size=length)
    rows = data.draw(st.just([]) | st.lists(row, min_size=12, max_size=20))
    found = GraphDetokenizer(vocabulary).detokenize(
        tf.constant(rows, tf.int32, shape=(len(rows), length))
    )
    expected = [detokenize(vocabulary.tokens_of(row)) for row in rows]
    assert [text.decode() for text in found.numpy()] == expected


@laws.examples(120)
@given(data=st.data())
def test_chinese_comes_back_whatever_the_source(tokenizers, chinese, data):
    text = data.draw(st.text(st.sampled_from(chinese), max_size=20))
    spaces = data.draw(st.lists(st.sampled_from((" ", "", "a")), max_size=20))
    parted = "".join(map("".join, itertools.zip_longest(text, spaces, fillvalue="")))
    source = data.draw(st.none() | st.just(parted) | texts())
    tokenizer = tokenizers[True]
    assert detokenize(tokenizer.tokenize(text), source, tokenizer) == text


@CASES
@laws.examples(300)
@given(text=texts())
@example(text=" ")  # a source without basic tokens
def test_what_is_written_has_the_same_tokens(tokenizers, do_lower_case, text):
    """For known tokens: a space never joins or splits words."""
    tokenizer = tokenizers[do_lower_case]
    text = "".join(known_parts(text, tokenizer))
    tokens = tokenizer.tokenize(text)
    assert UNK not in tokens
    written = detokenize(tokens)
    assert tokenizer.tokenize(written) == tokens
    # The result is final: another round trip gives the same.
    assert detokenize(tokenizer.tokenize(written)) == written
    # The fold of a sigma depends on its neighbours, which another space may change.
    if "Σ" not in text:
        assert tokenizer.tokenize(detokenize(tokens, text, tokenizer)) == tokens


def known_parts(text, tokenizer):
    """Yields the spans of a text without unknown basic tokens, and the spans between them."""
    end = 0
    for token in tokenizer.tokenize_with_offsets(text):
        if token.text == UNK:
            yield text[end : token.start] + " "
            end = token.end
    yield text[end:]


WORDS = [
    *"中国长江龘靐ab😀ＡА",
    "iPhone",
    "Straße",
    "café",
    "ΟΔΟΣ",
    "3",
    "14",
    "2023",
    "unbelievable",
]
MARKS = [*".,:;!?()[]/-@&%$'\"", *WIDE]


@CASES
@laws.examples(300)
@given(data=st.data())
def test_a_stretch_of_its_source_comes_back(tokenizers, do_lower_case, data):
    """Case, unknown words and spaces come back if no basic token occurs twice."""
    tokenizer = tokenizers[do_lower_case]
    words = data.draw(st.lists(st.sampled_from(WORDS + MARKS), min_size=1, unique_by=str.lower))
    spaces = [""]
    for before, word in itertools.pairwise(words):
        kinds = {characters.kind_of(c) for c in (before[-1], word[0])}
        is_wide = characters.ALONE in kinds or {*WIDE} & {before[-1], word[0]}
        are_words = kinds == {characters.ORDINARY}
        spaces.append(" " * (not is_wide and (are_words or data.draw(st.booleans()))))
    source = "".join(map("".join, zip(spaces, words, strict=True)))
    basic_tokens = [token.basic_token for token in tokenizer.tokenize_with_offsets(source)]
    assume(len({*basic_tokens}) == len(words))
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    text = words[first] + "".join(
        space + word for space, word in list(zip(spaces, words, strict=True))[first + 1 : last + 1]
    )
    tokens = tokenizer.tokenize(text)
    # Without a known token, nothing distinguishes several unknown words.
    assume(set(tokens) != {UNK} or len(words) == 1)
    assert detokenize(tokens, source, tokenizer) == text
