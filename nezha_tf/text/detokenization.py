"""Pieces back to natural text: no `##`, no special pieces, spaces only where words need them."""

import collections
import itertools
import re
from typing import NamedTuple

from nezha_tf.text import characters
from nezha_tf.text.vocabulary import SPECIAL_PIECES, UNK

_UNUSED = re.compile(r"\[unused\d+\]")
# ASCII punctuation that is written without a space after the word before it, and before the word
# after it. All other (`-`, `/`, `'`, `@`, `&` ...) leans on both.
_LEANS_LEFT, _LEANS_RIGHT = ",;:!?%)]}", "([{$"
# Between two digits they belong to a number or a time.
IN_NUMBERS = ".,:"

WIDE, WORD, LEFT, RIGHT, BOTH = range(5)


class _SourceToken(NamedTuple):
    """A token of the source: as the tokenizer gives it ([UNK] or folded), and as it was written."""

    text: str
    written: str
    space_follows: bool


def detokenize(pieces, source=None, tokenizer=None):
    """Returns the text that pieces stand for.

    Chinese is written without spaces, also beside Latin words; these and numbers are parted by
    one. About ASCII punctuation the rules are English ones. Special pieces are dropped.

    A source tells more. An [UNK] becomes what the tokenizer makes an [UNK] of there: where
    several are, the one whose neighbours agree most, or else they are taken in order. A Latin
    word that the source has is written as there (its case, its accents), and so is the space
    between two tokens that meet there, if neither is Chinese. An [UNK] stays out where there is
    no source or nothing unknown in it.

    Args:
      pieces: list of str.
      source: the raw text that the pieces retell or answer, or None.
      tokenizer: the `FullTokenizer` of both, needed with a source.
    """
    tokens = _tokens(pieces)
    source_tokens = _source_tokens(source, tokenizer) if source else []
    tokens = _known(tokens, source_tokens)
    written = _written(source_tokens)
    spaces = _spaces(source_tokens)
    texts = [written.get(token, token) for token in tokens]
    output = texts[:1]
    for index, by_rule in enumerate(_spaces_by_rule(texts)):
        is_wide = WIDE in (lean_of(texts[index][-1]), lean_of(texts[index + 1][0]))
        space = by_rule if is_wide else spaces.get((tokens[index], tokens[index + 1]), by_rule)
        output += [" "] * space + [texts[index + 1]]
    return "".join(output)


def _tokens(pieces):
    """Joins pieces to tokens; special ones are left out, but [UNK] is not."""
    tokens = []
    for piece in pieces:
        if is_dropped(piece):
            continue
        if is_inner(piece) and tokens and tokens[-1] != UNK:
            tokens[-1] += piece[2:]
        else:
            tokens.append(piece[2:] if is_inner(piece) else piece)
    return tokens


def is_dropped(piece):
    """Whether nothing is written for a piece: the special ones and the empty one, but not [UNK]."""
    is_special = piece in SPECIAL_PIECES or _UNUSED.fullmatch(piece)
    return not piece or bool(is_special and piece != UNK)


def is_inner(piece):
    """Whether a piece continues the token of the piece before it."""
    return piece.startswith("##") and len(piece) > 2


def _source_tokens(source, tokenizer):
    """Returns the tokens of a raw text as a list of `_SourceToken`."""
    pieces = tokenizer.tokenize_with_offsets(source)
    groups = [list(group) for _, group in itertools.groupby(pieces, key=lambda p: p.token)]
    ends = [*(group[0].start for group in groups), len(source)][1:]
    return [
        _SourceToken(
            "".join(piece.text.removeprefix("##") for piece in group),
            source[group[0].start : group[-1].end],
            any(characters.kind_of(c) == characters.SPACE for c in source[group[-1].end : end]),
        )
        for group, end in zip(groups, ends, strict=True)
    ]


def _known(tokens, source_tokens):
    """Replaces each [UNK] by the source's text, and drops those that have no counterpart in it."""
    texts = [token.text for token in source_tokens]
    candidates = [index for index, text in enumerate(texts) if text == UNK]
    unused, known = list(candidates), []
    for index, token in enumerate(tokens):
        if token != UNK:
            known.append(token)
        elif candidates:
            agreement = {c: _agreement(tokens, index, texts, c) for c in candidates}
            best = max(candidates, key=lambda c: (agreement[c], c in unused, -c))
            if best in unused:
                unused.remove(best)
            known.append(source_tokens[best].written)
    return known


def _agreement(tokens, index, source, source_index):
    """Returns how many tokens directly before and after two positions are equal."""
    before = zip(tokens[:index][::-1], source[:source_index][::-1], strict=False)
    after = zip(tokens[index + 1 :], source[source_index + 1 :], strict=False)
    return sum(
        sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        for pairs in (before, after)
    )


def _written(source_tokens):
    """Returns {token: how the source writes it most often}."""
    forms = collections.defaultdict(collections.Counter)
    for token in source_tokens:
        if token.text != UNK:
            forms[token.text][token.written] += 1
    return {text: counts.most_common(1)[0][0] for text, counts in forms.items()}


def _spaces(source_tokens):
    """Returns {(token, next token): whether the source mostly has a space between them}."""
    found = collections.defaultdict(collections.Counter)
    for token, following in itertools.pairwise(source_tokens):
        pair = tuple(t.written if t.text == UNK else t.text for t in (token, following))
        found[pair][token.space_follows] += 1
    return {pair: counts.most_common(1)[0][0] for pair, counts in found.items()}


def _spaces_by_rule(texts):
    """Returns for each two neighbours whether a space belongs between them (list of bool)."""
    leans = _leans(texts)
    # What leans on a word stands to its other side as the word would; on Chinese, as Chinese.
    after, before = [], []
    for lean, text in zip(leans, texts, strict=True):
        is_word = lean == WORD and lean_of(text[-1]) == WORD
        after.append(is_word or (lean == LEFT and bool(after) and after[-1]))
    for lean in reversed(leans):
        before.append(lean == WORD or (lean == RIGHT and bool(before) and before[-1]))
    before.reverse()
    return [
        after[index] and before[index + 1] and not _is_in_number(texts, index)
        for index in range(len(texts) - 1)
    ]


def _leans(texts):
    """Returns on which side of each token (by its first character) what it leans on stands."""
    leans, quotes = [], 0
    for index, text in enumerate(texts):
        lean = lean_of(text[0])
        following = texts[index + 1] if index + 1 < len(texts) else ""
        if text == '"':
            lean = LEFT if quotes % 2 else RIGHT
            quotes += 1
        elif text == "." and following[1:] and following[0].isupper():
            lean = LEFT  # the end of a sentence; a lower-case letter follows within a name
        leans.append(lean)
    return leans


def lean_of(char):
    """Returns what a character is for spaces: WIDE, WORD, or which of its sides it leans to."""
    if char.isascii() and characters.is_punctuation(char):
        return LEFT if char in _LEANS_LEFT else RIGHT if char in _LEANS_RIGHT else BOTH
    is_word = characters.kind_of(char) == characters.ORDINARY
    return WORD if is_word else WIDE


def _is_in_number(texts, index):
    """Whether the token at an index is punctuation between two digits."""
    return (
        texts[index] in tuple(IN_NUMBERS)
        and index > 0
        and texts[index - 1][-1].isdigit()
        and texts[index + 1][0].isdigit()
    )
