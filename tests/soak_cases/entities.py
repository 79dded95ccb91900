"""Checks that entries of --user_dict are masked as a whole, if their places are clear."""

import re

import numpy as np

from soak_cases import corpora
from soak_cases.rows import TOKENS

FILE = "../inputs/words.txt"
_CHINESE = re.compile("[\u4e00-\u9fff]+")


def check(case, sets, settings, documents, tokens):
    """Checks rows against the dictionary: an entry is one word, predicted wholly or not at all."""
    if settings.get("user_dict") != FILE or settings["masking"] not in ("entity", "none"):
        return
    sentences = [sentence for document in documents for sentence in document]
    words = {_as_tokens(word) for word in _plain_words(case)}
    words = [word for word in words if _is_plain_in(word, sentences, tokens)]
    for row in (row for files in sets.values() for of_file in files for row in of_file):
        is_predicted = np.zeros(len(row.ids), bool)
        is_predicted[row.positions] = True
        text = corpora.as_text(row.ids)
        for word in words:
            for start in _places(text, word):
                part = slice(start, start + len(word))
                told = f"token {start} on of {row.ids}: {row.positions} {row.word_starts}"
                if row.word_starts is None:
                    whole = is_predicted[part].all() or not is_predicted[part].any()
                    case.law("entities are predicted whole", whole, told)
                else:
                    begins = row.word_starts[part].tolist()
                    one = begins == [True] + [False] * (len(word) - 1)
                    case.law("entities are one word", one, told)


def _plain_words(case):
    """Returns entries that no other one can overlap: each character occurs once in all entries."""
    lines = (case.inputs / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    words = [line.split()[0] for line in lines]
    together = "".join(words)
    return [
        word
        for word in words
        if len(word) > 1
        and _CHINESE.fullmatch(word)
        and all(char in TOKENS and together.count(char) == 1 for char in word)
    ]


def _as_tokens(word):
    """Returns a word of single characters in the form of `corpora.as_text`."""
    return corpora.as_text([TOKENS.index(char) for char in word])


def _is_plain_in(word, sentences, tokens):
    """Whether these tokens are always this word in the text."""
    raw = "".join(TOKENS[ord(char) - 1] for char in word)
    # Not separated by white space, by characters that the tokenizer drops, or by a sentence's end.
    count = sum(sentence.count(raw) for sentence in sentences)
    found = list(_places(tokens.text, word))
    inside = (set(range(start + 1, start + len(word))) for start in found)
    return len(found) == count and not any(places & tokens.bounds for places in inside)


def _places(text, word):
    """Yields the places of a word in a text of tokens."""
    return (match.start() for match in re.finditer(re.escape(word), text))
