"""Reads the user's dictionary, in jieba's format, and finds its entries in texts."""

import re
from typing import NamedTuple

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

# To jieba, capitals are no part of speech, but of the word: "Los Angeles".
_ENTRY = re.compile(r"(\S+)(?: +([0-9]{1,9}))?(?: +((?(2)[A-Za-z]+|[a-z]+)))?")
# A last or last but one field that should be a frequency, but is none.
_FAULTY_NUMBER = re.compile(r".* (?![0-9]{1,9}(?: |$))[-+]?[0-9][0-9.,]*(?: +[A-Za-z]+)?")
_OTHER_SPACE = re.compile(r"[^\S ]")


class UserWord(NamedTuple):
    """A word, its frequency (None: high enough to be found as a word), and its part of speech."""

    text: str
    frequency: int | None = None
    tag: str | None = None


def read_user_dictionary(path, passed_over=None):
    """Reads a dictionary: each line has a word and optionally its frequency and part of speech.

    Args:
      path: a UTF-8 text file in the format of jieba's `load_userdict`, with spaces between the
        fields. Words with a space are passed over, because jieba never finds them.
      passed_over: list that gets the lines of these words.

    Returns:
      List of `UserWord` in the order of the file.

    Raises:
      UserError: the file cannot be read or has no word; or a line, given with its number, is
        not UTF-8 or has another format.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise UserError(f"cannot read --user_dict {path}: {error.strerror}") from error
    words, passed_over = [], [] if passed_over is None else passed_over
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise UserError(
                f"--user_dict {path}, line {number}: not UTF-8; convert the file"
            ) from error
        if not text:
            continue
        match = _ENTRY.fullmatch(text)
        if not match and not _OTHER_SPACE.search(text) and not _FAULTY_NUMBER.fullmatch(text):
            passed_over.append(text)
            continue
        if not match:
            raise UserError(
                f"--user_dict {path}, line {number}: {text[:40]!r} is not a word, its frequency "
                "and its part of speech with spaces between them; the last two are optional"
            )
        word, frequency, tag = match.groups()
        words.append(UserWord(word, int(frequency) if frequency else None, tag))
    if not words:
        spaced = f"; {len(passed_over):,} have a space, which is never found" if passed_over else ""
        raise UserError(f"--user_dict {path} has no word; write one per line{spaced}")
    return words


class Entities:
    """Finds the words of a dictionary in texts, from left to right, the longest at each place."""

    def __init__(self, words):
        """Args:
        words: `UserWord`s; words of frequency 0 are ignored, because jieba never finds them.
        """
        self._words = {word.text for word in words if word.frequency != 0}
        lengths = {}
        for word in self._words:
            lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        firsts = "".join(map(re.escape, self._lengths))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")

    def find(self, text):
        """Yields (start, end) of each entity, in order and without overlap."""
        end = 0
        for match in self._first.finditer(text):
            start = match.start()
            if start < end:
                continue
            for length in self._lengths[match.group()]:
                found = text[start : start + length]
                if found in self._words:
                    end = start + len(found)
                    yield start, end
                    break
