"""The WordPiece tokenizer of the TF1 originals in Python, with the place of each piece."""

from typing import NamedTuple

from nezha_tf.text import characters
from nezha_tf.text.vocabulary import UNK, Vocabulary

# Longer tokens become a single [UNK] (max_input_chars_per_word of the originals).
MAX_CHARS_PER_TOKEN = 200


class Token(NamedTuple):
    """A token before WordPiece: `text`, and the index of each of its characters in the raw text."""

    text: str
    offsets: tuple[int, ...]


class Piece(NamedTuple):
    """A piece of the vocabulary that covers the characters [start, end) of the raw text.

    `token` is the number of its token before WordPiece; pieces of a token have the same number.
    """

    text: str
    start: int
    end: int
    token: int


class FullTokenizer:
    """The originals' `FullTokenizer`: cleaning, splitting, lower-casing, greedy WordPiece.

    The tests compare it with TF1's `tokenization.FullTokenizer` on the strings of the golden files.
    """

    def __init__(self, vocab_file=None, do_lower_case=True, vocabulary=None):
        """Args:
          vocab_file: path of a `vocab.txt`.
          do_lower_case: whether to lower-case and strip accents first.
          vocabulary: a `Vocabulary`, instead of `vocab_file`.

        Raises:
          UserError: the vocabulary cannot be read, or lacks special pieces.
        """
        self.vocabulary = vocabulary or Vocabulary.from_file(vocab_file)
        self.do_lower_case = do_lower_case
        self._piece_cache = {}

    def tokenize(self, text):
        """Returns the pieces of a text as a list of strings."""
        return [piece.text for piece in self.tokenize_with_offsets(text)]

    def tokenize_with_offsets(self, text):
        """Returns the pieces of a text as a list of `Piece`."""
        pieces = []
        for number, token in enumerate(basic_tokens(text, self.do_lower_case)):
            for piece, first, last in self._wordpiece(token.text):
                start, end = token.offsets[first], token.offsets[last] + 1
                pieces.append(Piece(piece, start, end, number))
        return pieces

    def convert_tokens_to_ids(self, tokens):
        """Returns the ids of pieces as a list; unknown pieces get the id of [UNK]."""
        return self.vocabulary.ids_of(tokens)

    def convert_ids_to_tokens(self, ids):
        """Returns the pieces of ids (0 to V - 1) as a list; a larger one raises IndexError."""
        return self.vocabulary.pieces_of(ids)

    def _wordpiece(self, token):
        """Returns (piece, first character, last character) for each piece of a token."""
        found = self._piece_cache.get(token)
        if found is None:
            found = longest_match(token, self.vocabulary)
            if len(token) < 20 and len(self._piece_cache) < 2**17:  # bounds the cache's memory
                self._piece_cache[token] = found
        return found


def basic_tokens(text, do_lower_case=True):
    """Yields a `Token` for each token of the text before WordPiece.

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
    """Yields the tokens of a word without white space: folds it, then splits it at punctuation."""
    if do_lower_case:
        word, offsets = _fold_with_offsets(word, offsets)
    start = 0
    for index, char in enumerate(word):
        if characters.is_punctuation(char):
            if start < index:
                yield Token(word[start:index], tuple(offsets[start:index]))
            yield Token(char, (offsets[index],))
            start = index + 1
    if start < len(word):
        yield Token(word[start:], tuple(offsets[start:]))


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


def longest_match(token, vocabulary):
    """Splits a token by greedy longest match first.

    Returns:
      List of (piece, first character, last character). It is one [UNK] over the whole token if
      there is no split, or the token is longer than `MAX_CHARS_PER_TOKEN`.
    """
    unknown = [(UNK, 0, len(token) - 1)]
    if len(token) > MAX_CHARS_PER_TOKEN:
        return unknown
    pieces = []
    start = 0
    while start < len(token):
        prefix = "##" if start else ""
        for end in range(len(token), start, -1):
            piece = prefix + token[start:end]
            if piece in vocabulary:
                break
        else:
            return unknown
        pieces.append((piece, start, end - 1))
        start = end
    return pieces
