"""The WordPiece tokenizer of the TF1 originals in Python, with the place of each token."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from nezha_tf.text import characters
from nezha_tf.text.vocabulary import UNK, Vocabulary

# Longer basic tokens become a single [UNK] (max_input_chars_per_word of the originals).
MAX_CHARS_PER_BASIC_TOKEN = 200


class BasicToken(NamedTuple):
    """What WordPiece splits: `text`, and the index of each of its characters in the raw text."""

    text: str
    offsets: tuple[int, ...]


class Token(NamedTuple):
    """A token of the vocabulary that covers the characters [start, end) of the raw text.

    `basic_token` is the number of its basic token before WordPiece; tokens of a basic token have
    the same number.
    """

    text: str
    start: int
    end: int
    basic_token: int


class FullTokenizer:
    """The originals' `FullTokenizer`: cleaning, splitting, lower-casing, greedy WordPiece.

    The tests compare it with TF1's `tokenization.FullTokenizer` on the strings of the golden files.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike[str] | None = None,
        do_lower_case: bool = True,
        vocabulary: Vocabulary | None = None,
    ):
        """Takes the path of a `vocab.txt`, or a `Vocabulary` instead.

        `do_lower_case` says whether to lower-case and strip accents first. Raises a `UserError` if
        the vocabulary cannot be read, or lacks special tokens.
        """
        self.vocabulary = vocabulary or Vocabulary.from_file(vocab_file)
        self.do_lower_case = do_lower_case
        self._token_cache = {}

    def tokenize(self, text: str) -> list[str]:
        """Returns the tokens of a text as a list of strings."""
        return [token.text for token in self.tokenize_with_offsets(text)]

    def tokenize_with_offsets(self, text: str) -> list[Token]:
        """Returns the tokens of a text as a list of `Token`."""
        tokens = []
        for number, basic_token in enumerate(basic_tokens(text, self.do_lower_case)):
            for token, first, last in self._wordpiece(basic_token.text):
                start, end = basic_token.offsets[first], basic_token.offsets[last] + 1
                tokens.append(Token(token, start, end, number))
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens as a list; unknown tokens get the id of [UNK]."""
        return self.vocabulary.ids_of(tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens of ids (0 to V - 1) as a list; a larger one raises IndexError."""
        return self.vocabulary.tokens_of(ids)

    def _wordpiece(self, basic_token):
        tokens = self._token_cache.get(basic_token)
        if tokens is None:
            tokens = longest_match(basic_token, self.vocabulary)
            # This bounds the cache's memory.
            if len(basic_token) < 20 and len(self._token_cache) < 2**17:
                self._token_cache[basic_token] = tokens
        return tokens


def basic_tokens(text, do_lower_case=True):
    """Yields a `BasicToken` for each basic token of the text before WordPiece.

    The order is the original's: drop control characters, separate CJK characters, split at white
    space, lower-case and strip accents, split at punctuation.
    """
    word, offsets = [], []
    for index, char in enumerate(text):
        kind = characters.kind_of(char)
        if kind == characters.ORDINARY or kind == characters.PUNCTUATION:
            word.append(char)
            offsets.append(index)
        elif kind != characters.DROPPED:
            if word:
                yield from _split_word("".join(word), offsets, do_lower_case)
                word, offsets = [], []
            if kind == characters.ALONE:
                yield from _split_word(char, (index,), do_lower_case)
    if word:
        yield from _split_word("".join(word), offsets, do_lower_case)


def _split_word(word, offsets, do_lower_case):
    if do_lower_case:
        word, offsets = _fold_with_offsets(word, offsets)
    start = 0
    for index, char in enumerate(word):
        if characters.is_punctuation(char):
            if start < index:
                yield BasicToken(word[start:index], tuple(offsets[start:index]))
            yield BasicToken(char, (offsets[index],))
            start = index + 1
    if start < len(word):
        yield BasicToken(word[start:], tuple(offsets[start:]))


def _fold_with_offsets(word, offsets):
    """Returns (folded word, index of each of its characters in the raw text)."""
    folded = characters.fold(word)
    if word.isascii():
        return folded, offsets
    # Folding a character by itself gives as many characters as folding it inside the word, although
    # they may differ (a final sigma) or have another order (combining marks).
    widths = (len(characters.fold(char)) for char in word)
    spread = [o for o, width in zip(offsets, widths, strict=True) for _ in range(width)]
    return folded, spread


def longest_match(basic_token, vocabulary, is_inside=False):
    """Splits a basic token by greedy longest match into (token, first character, last character).

    It is one [UNK] if there is no split, or if it is longer than `MAX_CHARS_PER_BASIC_TOKEN`. With
    `is_inside` the text is the end of a longer basic token, so that the first token has ##, too.
    """
    unknown = [(UNK, 0, len(basic_token) - 1)]
    if len(basic_token) > MAX_CHARS_PER_BASIC_TOKEN:
        return unknown
    tokens = []
    start = 0
    while start < len(basic_token):
        prefix = "##" if start or is_inside else ""
        for end in range(len(basic_token), start, -1):
            token = prefix + basic_token[start:end]
            if token in vocabulary:
                break
        else:
            return unknown
        tokens.append((token, start, end - 1))
        start = end
    return tokens
