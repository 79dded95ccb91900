"""A pattern: a text with places for the texts of an example, and blanks for its class's word."""

import re

from nezha_tf.text.packing import Packing
from nezha_tf.text.vocabulary import MASK, SPECIAL_TOKENS, UNK
from nezha_tf.util.errors import UserError

TEXT, TEXT_PAIR = "{text}", "{text_pair}"
_PLACES = re.compile(rf"({re.escape(TEXT)}|{re.escape(TEXT_PAIR)}|{re.escape(MASK)})")


class Pattern(Packing):
    """The packing of examples in a pattern: [CLS] and [SEP] around it, all segment ids 0.

    The texts are cut so that the whole fits; the pattern itself is never cut. `num_blanks` is P,
    the number of blanks.
    """

    def __init__(self, pattern, tokenizer, max_seq_length, is_pair):
        """Args:
          pattern: text with `{text}` once, `[MASK]` for each token of the word of a class and, if
            examples are pairs, `{text_pair}` once.
          tokenizer: `FullTokenizer`.
          max_seq_length: most tokens of an example.
          is_pair: whether examples are pairs.

        Raises:
          UserError: the pattern lacks a place or a blank, or is too long.
        """
        parts = list(filter(None, _PLACES.split(pattern)))
        self.num_blanks = parts.count(MASK)
        _check(pattern, parts, is_pair)
        vocabulary, numbers = tokenizer.vocabulary, {TEXT: 0, TEXT_PAIR: 1}

        def part_of(text):
            if text in numbers:
                return numbers[text]
            return vocabulary.ids_of([MASK] if text == MASK else tokenizer.tokenize(text))

        parts = [[vocabulary.cls_id], *map(part_of, parts), [vocabulary.sep_id]]
        order = (1, 0) if is_pair else (0,)
        super().__init__([(part, 0) for part in parts], max_seq_length, order)


def _check(pattern, parts, is_pair):
    flag = f"--pattern={pattern}"
    if parts.count(TEXT) != 1:
        raise UserError(f"{flag} must have {TEXT} once")
    if parts.count(TEXT_PAIR) != is_pair:
        raise UserError(
            f"{flag} must have {TEXT_PAIR} once, as the examples are pairs"
            if is_pair
            else f"{flag} has {TEXT_PAIR}, but the examples are single texts"
        )
    if MASK not in parts:
        raise UserError(f"{flag} has no {MASK}; write one for each token of the words")


def check_text(pattern, tokenizer):
    """Raises a `UserError` if the text between a pattern's places has what would be misread.

    That is braces or special tokens, which would be read as text, and unknown characters.
    """
    for part in _PLACES.split(pattern)[::2]:
        for sign in ("{", "}", *SPECIAL_TOKENS):
            if sign in part:
                raise UserError(
                    f"--pattern={pattern} has {sign!r} in {part!r}, where it would be read as "
                    f"text; only {TEXT}, {TEXT_PAIR} and {MASK} are replaced, so leave it out"
                )
        if not _is_known(tokenizer.tokenize(part), tokenizer.vocabulary):
            raise UserError(
                f"--pattern={pattern} has a character in {part!r} that is not in the vocabulary; "
                "write it with others"
            )


def label_tokens(labels, words, tokenizer, num_blanks):
    """Returns the ids of the tokens of each class's word, a list of L lists of P ints.

    Args:
      labels: the names of the L classes.
      words: the L words.
      tokenizer: `FullTokenizer`.
      num_blanks: P.

    Raises:
      UserError: the numbers of words or tokens differ, a word has an unknown token, or two classes
        have the same word.
    """
    if len(words) != len(labels):
        raise UserError(
            f"--label_words has {len(words)} words for {len(labels)} classes "
            f"({', '.join(labels[:20])}); write one for each, in this order"
        )
    found = []
    for label, word in zip(labels, words, strict=True):
        tokens = tokenizer.tokenize(word)
        if len(tokens) != num_blanks:
            raise UserError(
                f"--label_words: {word!r} has {len(tokens)} tokens, but --pattern has "
                f"{num_blanks} {MASK}; all words need as many tokens as the pattern has blanks"
            )
        if not _is_known(tokens, tokenizer.vocabulary):
            raise UserError(f"--label_words: {word!r} (of {label}) is not in the vocabulary")
        found.append(tokenizer.vocabulary.ids_of(tokens))
    if len(set(map(tuple, found))) < len(found):
        raise UserError("--label_words: two classes have the same word")
    return found


def _is_known(tokens, vocabulary):
    return all(token in vocabulary and token != UNK for token in tokens)
