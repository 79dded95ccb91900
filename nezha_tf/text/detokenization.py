"""Converts tokens to natural text without `##` and special tokens, with spaces between words."""

import collections
import itertools
from typing import NamedTuple

from nezha_tf.text import characters
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, UNK, UNUSED_TOKEN

# ASCII punctuation that follows the word before it without a space ("leans left"), and that
# precedes the word after it without a space ("leans right"). Other punctuation (`-`, `/`, `'`,
# `@`, `&` ...) has no space on either side.
_LEANS_LEFT, _LEANS_RIGHT = ",;:!?%)]}", "([{$"
# Between two digits, these belong to a number or a time.
IN_NUMBERS = ".,:"

WIDE, WORD, LEFT, RIGHT, BOTH = range(5)


class _SourceToken(NamedTuple):
    """A basic token of the source: its form ([UNK] or folded), and the original spelling."""

    text: str
    written: str
    space_follows: bool


def detokenize(tokens, source=None, tokenizer=None):
    """Returns the text of tokens.

    Chinese is written without spaces, also beside Latin words; Latin words and numbers are
    separated by a space. Spaces beside ASCII punctuation follow English rules. Special tokens are
    dropped.

    With a source, more is known. An [UNK] becomes a text that the tokenizer turns into [UNK] in the
    source: if there are several, the one with most equal neighbours; ties are used in order. A
    Latin word of the source gets its spelling there (case, accents), and two adjacent basic tokens
    of the source, neither of them Chinese, have a space if they have one there. Without a source,
    or without unknown text in it, [UNK] is dropped.

    Args:
      tokens: list of str.
      source: the raw text that the tokens summarize or answer, or None.
      tokenizer: the `FullTokenizer` of both; needed with a source.
    """
    basic_tokens = _basic_tokens(tokens)
    source_basic_tokens = _source_tokens(source, tokenizer) if source else []
    basic_tokens = _known(basic_tokens, source_basic_tokens)
    written = _written(source_basic_tokens)
    spaces = _spaces(source_basic_tokens)
    texts = [written.get(basic_token, basic_token) for basic_token in basic_tokens]
    output = texts[:1]
    for index, space in enumerate(_spaces_by_rule(texts)):
        if WIDE not in (lean_of(texts[index][-1]), lean_of(texts[index + 1][0])):
            space = spaces.get((basic_tokens[index], basic_tokens[index + 1]), space)
        output += [" "] * space + [texts[index + 1]]
    return "".join(output)


def _basic_tokens(tokens):
    basic_tokens = []
    for token in tokens:
        if is_dropped(token):
            continue
        if is_inner(token) and basic_tokens and basic_tokens[-1] != UNK:
            basic_tokens[-1] += token[2:]
        else:
            basic_tokens.append(token[2:] if is_inner(token) else token)
    return basic_tokens


def is_dropped(token):
    """Whether a token is left out of the text: special tokens except [UNK], and the empty token."""
    is_special = token in SPECIAL_TOKENS or UNUSED_TOKEN.fullmatch(token)
    return not token or bool(is_special and token != UNK)


def is_inner(token):
    """Whether a token continues the basic token of the token before it."""
    return token.startswith("##") and len(token) > 2


def _source_tokens(source, tokenizer):
    tokens = tokenizer.tokenize_with_offsets(source)
    groups = [list(group) for _, group in itertools.groupby(tokens, key=lambda p: p.basic_token)]
    ends = [*(group[0].start for group in groups), len(source)][1:]
    return [
        _SourceToken(
            "".join(token.text.removeprefix("##") for token in group),
            source[group[0].start : group[-1].end],
            any(characters.kind_of(c) == characters.SPACE for c in source[group[-1].end : end]),
        )
        for group, end in zip(groups, ends, strict=True)
    ]


def _known(basic_tokens, source_basic_tokens):
    """Replaces each [UNK] by a text of the source; drops it if the source has no unknown text."""
    texts = [basic_token.text for basic_token in source_basic_tokens]
    candidates = [index for index, text in enumerate(texts) if text == UNK]
    unused, known = list(candidates), []
    for index, basic_token in enumerate(basic_tokens):
        if basic_token != UNK:
            known.append(basic_token)
        elif candidates:
            agreement = {c: _agreement(basic_tokens, index, texts, c) for c in candidates}
            best = max(candidates, key=lambda c: (agreement[c], c in unused, -c))
            if best in unused:
                unused.remove(best)
            known.append(source_basic_tokens[best].written)
    return known


def _agreement(basic_tokens, index, source, source_index):
    """Returns how many basic tokens directly before and after two places are equal."""
    before = zip(basic_tokens[:index][::-1], source[:source_index][::-1], strict=False)
    after = zip(basic_tokens[index + 1 :], source[source_index + 1 :], strict=False)
    return sum(
        sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        for pairs in (before, after)
    )


def _written(source_basic_tokens):
    """Returns {basic token: its most frequent spelling in the source}."""
    return _most_frequent((t.text, t.written) for t in source_basic_tokens if t.text != UNK)


def _spaces(source_basic_tokens):
    """Returns {(basic token, next one): whether the source usually has a space between them}."""
    forms = [t.written if t.text == UNK else t.text for t in source_basic_tokens]
    spaces = (t.space_follows for t in source_basic_tokens)
    return _most_frequent(zip(itertools.pairwise(forms), spaces, strict=False))


def _most_frequent(pairs):
    counts = collections.defaultdict(collections.Counter)
    for key, value in pairs:
        counts[key][value] += 1
    return {key: values.most_common(1)[0][0] for key, values in counts.items()}


def _spaces_by_rule(texts):
    """Returns for each two neighbours whether there is a space between them, a list of bool."""
    leans = _leans(texts)
    # Punctuation that leans on a word has, on its other side, the same spaces as the word itself.
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
    leans, quotes = [], 0
    for index, text in enumerate(texts):
        lean = lean_of(text[0])
        following = texts[index + 1] if index + 1 < len(texts) else ""
        if text == '"':
            lean = LEFT if quotes % 2 else RIGHT
            quotes += 1
        elif text == "." and following[1:] and following[0].isupper():
            lean = LEFT  # the end of a sentence; inside a name, a lower-case letter follows
        leans.append(lean)
    return leans


def lean_of(char):
    """Returns a character's lean: WIDE (Chinese), WORD, or LEFT, RIGHT or BOTH (punctuation)."""
    if char.isascii() and characters.is_punctuation(char):
        return LEFT if char in _LEANS_LEFT else RIGHT if char in _LEANS_RIGHT else BOTH
    is_word = characters.kind_of(char) == characters.ORDINARY
    return WORD if is_word else WIDE


def _is_in_number(texts, index):
    return (
        texts[index] in tuple(IN_NUMBERS)
        and index > 0
        and texts[index - 1][-1].isdigit()
        and texts[index + 1][0].isdigit()
    )
