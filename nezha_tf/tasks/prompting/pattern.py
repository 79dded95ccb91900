"""A pattern: a text with places for the texts of an example, and blanks for its class's word."""

import re

import numpy as np

from nezha_tf.text.packing import truncated_lengths
from nezha_tf.text.vocabulary import MASK, SPECIAL_TOKENS, UNK
from nezha_tf.util.errors import UserError

TEXT, TEXT_PAIR = "{text}", "{text_pair}"
_PLACES = re.compile(rf"({re.escape(TEXT)}|{re.escape(TEXT_PAIR)}|{re.escape(MASK)})")


class Pattern:
    """A pattern that packs examples: [CLS] and [SEP] around it, all segment ids 0.

    The texts are cut so that the whole fits; the pattern itself is never cut.

    Attributes:
      parts: list of `TEXT`, `TEXT_PAIR`, or lists of ids, in order.
      num_blanks: P, the number of blanks.
      room: tokens that the texts have together.
      num_truncated: number of examples so far whose texts were cut.
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

        def ids(text):
            return tokenizer.vocabulary.ids_of([MASK] if text == MASK else tokenizer.tokenize(text))

        parts = [part if part in (TEXT, TEXT_PAIR) else ids(part) for part in parts]
        self.parts = [[tokenizer.vocabulary.cls_id], *parts, [tokenizer.vocabulary.sep_id]]
        fixed = sum(len(part) for part in self.parts if isinstance(part, list))
        least = 2 if is_pair else 1
        self.room = max_seq_length - fixed
        if self.room < least:
            raise UserError(
                f"--pattern has {fixed} tokens, with [CLS] and [SEP]: --max_seq_length="
                f"{max_seq_length} must be at least {fixed + least}"
            )
        self.num_truncated = 0

    def __call__(self, first, second=None):
        """Returns (ids, segment_ids), int32 arrays; see `TextPacking`."""
        lengths = (len(first), 0 if second is None else len(second))
        kept = truncated_lengths(*lengths, self.room)
        self.num_truncated += kept != lengths
        texts = {TEXT: first[: kept[0]], TEXT_PAIR: None if second is None else second[: kept[1]]}
        parts = [texts[part] if isinstance(part, str) else part for part in self.parts]
        ids = np.concatenate(parts).astype(np.int32)
        return ids, np.zeros(len(ids), np.int32)


def _check(pattern, parts, is_pair):
    flag = f"--pattern={pattern}"
    if parts.count(TEXT) != 1:
        raise UserError(f"{flag} must have {TEXT} once")
    if parts.count(TEXT_PAIR) != is_pair:
        where = f"must have {TEXT_PAIR} once, as" if is_pair else f"has {TEXT_PAIR}, but"
        what = "pairs" if is_pair else "single texts"
        raise UserError(f"{flag} {where} the examples are {what}")
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
