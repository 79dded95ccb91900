"""Property tests of tokenizers: BERT's definition; in Python, in bulk and in the graph."""

import collections
import itertools
import unicodedata

import laws
import pytest
import tensorflow as tf
from any_texts import texts
from hypothesis import given
from hypothesis import strategies as st

from nezha_tf import FullTokenizer, GraphTokenizer, Vocabulary
from nezha_tf.text import characters
from nezha_tf.text.bulk_tokenizer import BulkTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, UNK

# The graph's libraries know more characters, from a newer Unicode version than Python's.
KNOWN_CHARACTER = st.characters(exclude_categories=["Cs", "Cn"])
WITH_SURROGATES = st.characters(exclude_categories=[])
CASES = pytest.mark.parametrize("do_lower_case", (True, False))


@pytest.fixture(scope="module")
def tokenizers(vocabulary):
    """By whether they lower-case: the tokenizer in Python and the one in the graph."""
    return {
        case: (
            FullTokenizer(vocabulary=vocabulary, do_lower_case=case),
            GraphTokenizer(vocabulary, case),
        )
        for case in (True, False)
    }


def basic_tokens_by_definition(text, do_lower_case):
    """BERT's BasicTokenizer: each of its steps on the whole text, one after another."""
    text = "".join(map(cleaned, text))
    basic_tokens = []
    for word in text.split():
        if do_lower_case:
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(char for char in word if unicodedata.category(char) != "Mn")
        basic_tokens += "".join(f" {c} " if stands_alone(c) else c for c in word).split()
    return basic_tokens


def cleaned(char):
    category, code = unicodedata.category(char), ord(char)
    if char in "\t\n\r" or category == "Zs":
        return " "
    if code in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return ""
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F))
    blocks += ((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return f" {char} " if any(first <= code <= last for first, last in blocks) else char


def stands_alone(char):
    is_symbol = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return is_symbol or unicodedata.category(char)[0] == "P"


def tokens_by_definition(basic_token, tokens):
    """Greedy longest match first: of all ways to split it, the lexicographically greatest."""
    if len(basic_token) > 200:
        return [UNK]
    found, rest = [], basic_token
    while rest:
        prefix = "##" if found else ""
        fitting = [n for n in range(1, len(rest) + 1) if prefix + rest[:n] in tokens]
        if not fitting:
            return [UNK]
        found.append(prefix + rest[: max(fitting)])
        rest = rest[max(fitting) :]
    return found


# All words of two letters, and characters that folding changes, splits or treats by place.
SMALL = ["".join(word) for n in (1, 2, 3) for word in itertools.product("ab", repeat=n)]
ODD = [*"éσςß中国.#-[", "\u1112", "\u1161", "\u1112\u1161", "e", "ασ", "ας"]
ODD += ["##", "a b", "\0", "a\0"]  # characters that do not belong to basic tokens
SMALL += [f"##{token}" for token in SMALL]
ODD += [f"##{token}" for token in ODD]


@st.composite
def vocabularies(draw):
    """Draws tokens of few letters, with and without ##, so that many fit in several ways."""
    # At least one: tensorflow-text cannot build a trie of only special tokens.
    tokens = draw(st.lists(st.sampled_from(SMALL), min_size=1, max_size=20, unique=True))
    tokens += draw(st.lists(st.sampled_from(ODD) | st.text(min_size=1, max_size=3), max_size=12))
    tokens += ["a", "b", "##a", "##b"] * draw(st.booleans())
    tokens += ["ασ", "ας"] * draw(st.booleans())
    return Vocabulary(dict.fromkeys([*SPECIAL_TOKENS, *tokens]))


def texts_of(vocabulary):
    """Draws texts of the tokens and of their letters."""
    words = [token.removeprefix("##") for token in vocabulary.tokens]
    odd = [*"éΣςß中.#-[] 한\u200b\0", "A", "ΑΣ", "ΑΣ.a", "ab", "ba" * 100, "ba" * 101]
    parts = st.sampled_from(words) | st.sampled_from(odd)
    return st.lists(parts, max_size=10).map("".join)


@laws.examples(300)
@given(st.data(), st.booleans())
def test_tokens_are_those_of_berts_definition(data, do_lower_case):
    vocabulary = data.draw(vocabularies())
    tokenizer = FullTokenizer(vocabulary=vocabulary, do_lower_case=do_lower_case)
    text = data.draw(texts_of(vocabulary) | texts())
    expected = [
        token
        for basic_token in basic_tokens_by_definition(text, do_lower_case)
        for token in tokens_by_definition(basic_token, set(vocabulary.tokens))
    ]
    assert tokenizer.tokenize(text) == expected


@CASES
@laws.examples(300)
@given(text=texts() | st.text())
def test_offsets_point_at_what_the_tokens_say(tokenizers, do_lower_case, text):
    tokenizer, _ = tokenizers[do_lower_case]
    tokens = tokenizer.tokenize_with_offsets(text)
    for before, token in itertools.pairwise(tokens):
        assert token.start >= before.start and token.end >= before.end
        # Only tokens of one character that folding expands share characters.
        assert token.start >= before.end - 1
        assert token.basic_token - before.basic_token == (not token.text.startswith("##"))
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)
        assert is_kept(text[token.start]) and is_kept(text[token.end - 1])
        if token.text != UNK:
            assert_says(token.text.removeprefix("##"), text[token.start : token.end], do_lower_case)
    covered = {place for token in tokens for place in range(token.start, token.end)}
    for place in {*range(len(text))} - covered:
        # Folding a whole text may drop a mark that otherwise only cleaning drops.
        is_mark = do_lower_case and unicodedata.category(text[place]) == "Mn"
        assert is_mark or not is_kept(text[place])


def is_kept(char):
    return characters.kind_of(char) not in (characters.DROPPED, characters.SPACE)


def assert_says(token, stretch, do_lower_case):
    """Asserts that a token's letters are among those of its span of the text, in order."""
    kept = "".join(filter(is_kept, stretch))
    if do_lower_case:
        kept = "".join(basic_tokens_by_definition(kept, do_lower_case)).replace("ς", "σ")
        token = token.replace("ς", "σ")
    if any(map(unicodedata.combining, kept)):  # marks are reordered
        assert not set(token) - set(kept)
    elif len(stretch) > 1:
        # The first and the last character may be shared.
        assert token in kept and len(kept) - len(token) <= 4
    else:
        assert token in kept


@CASES
@laws.examples(200)
@given(lines=st.lists(texts(WITH_SURROGATES) | st.text(WITH_SURROGATES), max_size=6))
def test_many_lines_are_as_each_by_itself(tokenizers, do_lower_case, lines):
    assert_bulk_is_equal(tokenizers[do_lower_case][0], lines)


def assert_bulk_is_equal(tokenizer, lines):
    found = BulkTokenizer(tokenizer).tokenize(lines)
    offsets = itertools.accumulate((len(line) + 1 for line in lines), initial=0)
    expected = [
        (tokenizer.convert_tokens_to_ids([token.text])[0], offset + token.start, token.basic_token)
        for offset, line in zip(offsets, lines, strict=False)
        for token in tokenizer.tokenize_with_offsets(line)
    ]
    assert list(zip(found.ids, found.places, strict=True)) == [row[:2] for row in expected]
    counts = [len(tokenizer.tokenize(line)) for line in lines]
    assert found.line_ends.tolist() == list(itertools.accumulate(counts))
    # A basic token begins where the basic token's number changes, and on each line.
    starts = {0, *found.line_ends.tolist()}
    begins = [n in starts or expected[n][2] != expected[n - 1][2] for n in range(len(expected))]
    assert found.begins_basic_token.tolist() == begins


@CASES
@laws.examples(20)
@given(rows=st.lists(texts(KNOWN_CHARACTER) | st.text(KNOWN_CHARACTER), min_size=1, max_size=8))
def test_the_graph_gives_the_ids_and_offsets_of_python(tokenizers, do_lower_case, rows):
    tokenizer, graph = tokenizers[do_lower_case]
    assert_equal(tokenizer, graph, rows)


@laws.examples(20)
@given(st.data(), st.booleans())
def test_all_three_are_equal_with_any_vocabulary(data, do_lower_case):
    vocabulary = data.draw(vocabularies())
    tokenizer = FullTokenizer(vocabulary=vocabulary, do_lower_case=do_lower_case)
    rows = data.draw(st.lists(texts_of(vocabulary), min_size=1, max_size=8))
    assert_equal(tokenizer, GraphTokenizer(vocabulary, do_lower_case), rows)
    assert_bulk_is_equal(tokenizer, rows)


def assert_equal(tokenizer, graph, rows):
    ids = graph.tokenize(tf.constant(rows)).to_list()
    found = [values.to_list() for values in graph.tokenize_with_offsets(tf.constant(rows))]
    assert ids == found[0]
    for text, *row in zip(rows, *found, strict=True):
        tokens = tokenizer.tokenize_with_offsets(text)
        expected = [tokenizer.convert_tokens_to_ids([token.text for token in tokens])]
        expected += [[token.start for token in tokens], [token.end for token in tokens]]
        assert row == expected, ascii(text)


def test_unknown_characters_are_counted(vocabulary):
    tokenizer = FullTokenizer(vocabulary=vocabulary)
    bulk = BulkTokenizer(tokenizer)
    ids = bulk.tokenize(["我\U0001f600爱\u9f98龘，kanΩ", "龘 \U0001f600\U0001f601", "a" * 201]).ids
    unknown = vocabulary.ids_of(["[UNK]"])[0]
    assert "龘" not in vocabulary and "ω" not in vocabulary
    expected = collections.Counter({"\U0001f600": 2, "龘": 3, "\U0001f601": 1, "Ω": 1})
    assert bulk.unknown_characters == expected
    assert (ids == unknown).sum() == 1 + 2 + 1 + 1 + 1 + 1
