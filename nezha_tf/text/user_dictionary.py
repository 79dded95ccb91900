"""The user's own words: a dictionary in jieba's format, and where its entries stand in a text."""

import re
from typing import NamedTuple

from nezha_tf import storage
from nezha_tf.errors import UserError

_ENTRY = re.compile(r"(\S+)(?: +([0-9]{1,9}))?(?: +([A-Za-z]+))?")


class UserWord(NamedTuple):
    """A word, its frequency (None: high enough that it is cut out), and its part of speech."""

    text: str
    frequency: int | None = None
    tag: str | None = None


def read_user_dictionary(path):
    """Reads a dictionary: a word a line, then its frequency and its part of speech, if known.

    Args:
      path: a UTF-8 text file, in the format of jieba's `load_userdict`: blanks between the
        fields, and no word with a blank in it, as jieba never finds one.

    Returns:
      List of `UserWord` in the order of the file.

    Raises:
      UserError: a file that cannot be read or holds no word; a line, with its number, that is
        not UTF-8 or not of this form.
    """
    try:
        with storage.open_binary(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise UserError(f"cannot read --user_dict {path}: {error.strerror}") from error
    words = []
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
        if not match:
            raise UserError(
                f"--user_dict {path}, line {number}: {text[:40]!r} is not a word, its frequency "
                "and its part of speech with blanks between them; the last two may be left out"
            )
        word, frequency, tag = match.groups()
        words.append(UserWord(word, int(frequency) if frequency else None, tag))
    if not words:
        raise UserError(f"--user_dict {path} holds no word; write one a line")
    return words


class Entities:
    """Finds the words of a dictionary in texts: from the left, the longest at each place."""

    def __init__(self, words):
        """Args:
        words: `UserWord`s; one of frequency 0 is no entity, as jieba never cuts it out.
        """
        self._words = {word.text for word in words if word.frequency != 0}
        lengths = {}
        for word in self._words:
            lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        firsts = "".join(map(re.escape, self._lengths))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")

    def find(self, text):
        """Yields (start, end) of each entity, in order and apart from each other."""
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
