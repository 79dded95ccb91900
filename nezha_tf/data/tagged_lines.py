"""Reads sentences of which each line has a character and its tag."""

import string
from typing import NamedTuple

from nezha_tf.data.entity_tags import OUTSIDE, TAG, TAGS_MEANT
from nezha_tf.data.lines import RowFault
from nezha_tf.text.characters import is_blank, is_one_character


class TaggedSentence(NamedTuple):
    """A sentence: the number of its first line, its characters, and their tags (lists of str)."""

    line: int
    characters: list[str]
    tags: list[str]


def read_tagged_lines(lines, rows):
    """Returns the sentences of lines, a list of `TaggedSentence`.

    A line is a character, a space or a tab, and its tag; a blank line is between sentences. The
    character may have several code points (`is_one_character`). In Weibo NER every character is
    followed by the number of its place in its word (`科0`); these numbers are left out.

    `rows` has `check_label(label)`, which raises `RowFault`, and `fail(place, fault)`,
    which is called with the fault of a sentence.
    """
    found, has_places = [], _has_places(lines)
    for first, block in _blocks(lines):
        number = first
        try:
            pairs = []
            for number, line in enumerate(block, start=first):  # noqa: B007
                token, tag = _token_and_tag(line)
                pairs.append((_character(token, has_places), tag))
                if tag != OUTSIDE:
                    rows.check_label(tag[2:])
            found.append(TaggedSentence(first, *map(list, zip(*pairs, strict=True))))
        except RowFault as fault:
            rows.fail(f"line {number}", fault)
    return found


def is_tagged_line(line):
    """Whether a line has a character, perhaps with its place in its word, and a tag."""
    try:
        token, _ = _token_and_tag(line)
    except RowFault:
        return False
    return is_one_character(token) or _without_place(token) is not None


def _blocks(lines):
    """Yields (number of the first line, lines) for each block between blank lines."""
    block = []
    for number, line in enumerate([*lines, ""], start=1):
        if not is_blank(line):
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _token_and_tag(line):
    blanks = (place for place, char in enumerate(line) if char in " \t")
    # The character may itself be white space.
    end = 1 if line[1:2] in (" ", "\t") else next(blanks, len(line))
    token, tag = line[:end], line[end:].strip()
    if not token or not tag:
        raise RowFault(f"{line!r} has no tag; write a character, a space or a tab, and its tag")
    if not is_one_character(token) and _without_place(token) is None:
        raise _several(token)
    if not TAG.fullmatch(tag):
        raise RowFault(f"{tag!r} is not a tag; {TAGS_MEANT}")
    return token, tag


def _has_places(lines):
    """Whether all characters of a file are followed by their places in their words."""
    tokens = [_token_and_tag(line)[0] for line in lines if is_tagged_line(line)]
    return bool(tokens) and all(_without_place(token) is not None for token in tokens)


def _without_place(token):
    """Returns the character of a token of Weibo NER; None: it is no character with a number."""
    # The character may itself be a digit.
    character = token.rstrip(string.digits) or token[:1]
    return character if character != token and is_one_character(character) else None


def _character(token, has_place):
    if has_place:
        return _without_place(token)
    if not is_one_character(token):
        raise _several(token)
    return token


def _several(token):
    return RowFault(
        f"{token!r} is more than one character; write one character and its tag per line"
    )
