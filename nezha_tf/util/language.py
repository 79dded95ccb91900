"""The language of the screen: messages are English in the code, and shown in Chinese on demand.

A message is translated where it is shown, not where it is made. The catalogue has a template for
each, such as `{0} is empty`, which is matched with the whole text; what stands in place of {0} is
translated in turn; {0:n} is a number. So the code has plain f-strings, and exceptions hold English.
Where English is shown, the catalogue is not read.
"""

import functools
import json
import os
import re
import string
import sys

ENGLISH, CHINESE = LANGUAGES = ("en", "zh")
FLAG = "language"
# The order in which gettext reads them; the first that is set decides.
_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_CATALOGUE = os.path.join(os.path.dirname(__file__), os.pardir, "resources", "zh.po")
_ENTRY = re.compile(r'msgid (".*")\nmsgstr (".*")')
# Messages that consist of several ones have these between them.
_BETWEEN = {"; ": "；", ": ": "：", ", ": "，", " and ": "和 ", " or ": "或 ", " (": " ("}
_SEPARATOR = re.compile("|".join(map(re.escape, _BETWEEN)))
_BETWEEN_FLAGS = re.compile(r" (and|or) (?=--)")
# What `{0:n}` stands for: a number, or one with a noun, as of `console.plural`.
NUMBER = "n"
_NUMBER = re.compile(r"([-+]?[\d.,]+(e[-+]?\d+)?%?|inf|nan)( \w+)?")
# Templates with few letters of their own, such as `{0} in {1}`, fit nearly all texts, so their
# values must be single words. A number is as telling as some letters.
_FEW_LETTERS, _LETTERS_OF_NUMBER = 7, 3
_WORD, _TEXT = re.compile(r"\S*"), re.compile(".*", re.DOTALL)

_chosen = ENGLISH


def use(language):
    """Sets the language of what this process shows, one of `LANGUAGES`."""
    global _chosen
    _chosen = language


def current():
    """Returns the language of what this process shows, one of `LANGUAGES`."""
    return _chosen


def of_start(arguments, environment):
    """Returns the language that a program starts with.

    `--language` in its arguments decides. Without it, the environment does on a terminal. If stdout
    or stderr is none, as in scripts, the language is English.

    Args:
      arguments: list of str; the last of several flags counts.
      environment: dict of environment variables.
    """
    given = [text.partition("=") for text in arguments if text.startswith("-")]
    named = [value for name, _, value in given if name.lstrip("-") == FLAG]
    if named and named[-1] in LANGUAGES:
        return named[-1]
    set_ = [environment[name] for name in _VARIABLES if environment.get(name)]
    outputs = (sys.stdout, sys.stderr)  # None: it is closed
    is_screen = all(output is not None and output.isatty() for output in outputs)
    return CHINESE if is_screen and set_ and set_[0].startswith(CHINESE) else ENGLISH


def translated(text):
    """Returns a text in the language of the screen.

    Lines are translated one by one. Those that no message fits, and those that begin with two
    spaces, as rows of tables and commands do, stay as they are.
    """
    if _chosen == ENGLISH:
        return text
    return "\n".join(line if line.startswith("  ") else _columns(line) for line in text.split("\n"))


def _columns(line):
    """Returns a line in Chinese; what two spaces part are messages of their own."""
    columns = line.split("  ")
    is_one = len(columns) == 1 or not all(columns) or _message(line) is not None
    return _line(line) if is_one else "  ".join(map(_line, columns))


def read_catalogue(path=_CATALOGUE):
    """Returns the messages of a PO file, a dict of English to Chinese.

    The standard library reads no PO files, only compiled ones, which cannot be reviewed. This reads
    the part of the format that `tests/messages.py` writes: entries of a line each, and comments.

    Raises:
      ValueError: the file has other lines.
    """
    with open(path, encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    found = {}
    for block in blocks:
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        entry = _ENTRY.fullmatch("\n".join(lines))
        if lines and not entry:
            raise ValueError(f"{path}: this is no entry: {block}")
        if entry:
            found[json.loads(entry[1])] = json.loads(entry[2])
    return found


def parts(template):
    """Returns the texts of a template before, between and behind its placeholders, a list."""
    texts = [""]
    for text, name, _, _ in string.Formatter().parse(template):
        texts[-1] += text
        if name is not None:
            texts.append("")
    return texts


class _Template:
    """A message with placeholders."""

    def __init__(self, english, chinese):
        self._parts = parts(english)
        self._longest = max(self._parts, key=len)
        self.length = sum(map(len, self._parts))
        kinds = [kind for _, name, kind, _ in string.Formatter().parse(english) if name]
        letters = len(re.findall("[A-Za-z=-]", "".join(self._parts)))
        self.has_few = letters + kinds.count(NUMBER) * _LETTERS_OF_NUMBER < _FEW_LETTERS
        self._kinds = [
            _NUMBER if kind == NUMBER else _WORD if self.has_few else _TEXT for kind in kinds
        ]
        self._chinese = list(string.Formatter().parse(chinese))

    def in_chinese(self, text):
        """Returns the Chinese of a text, or None if it is no such message."""
        values = split(text, self._parts) if self._longest in text else None
        if values is None or not all(map(re.Pattern.fullmatch, self._kinds, values)):
            return None
        # Of several messages in a row, one would have the others in its values.
        if not all(map(_is_balanced, values)):
            return None
        shown = list(map(_value, values))
        return "".join(
            own + (shown[int(name)] if name else "") for own, name, _, _ in self._chinese
        )


def _is_balanced(text):
    depth = 0
    for bracket in re.findall("[()]", text):
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@functools.cache
def _catalogue():
    """Returns (dict of messages without placeholders, list of `_Template`, the longest first)."""
    fixed, templates = {}, []
    for english, chinese in read_catalogue().items():
        texts = parts(english)
        if chinese and len(texts) == 1:
            fixed[texts[0]] = parts(chinese)[0]
        elif chinese:  # it is empty while a message has no translation yet
            templates.append(_Template(english, chinese))
    return fixed, sorted(templates, key=lambda template: -template.length)


def _line(text):
    """Returns a line in Chinese: as one message, or else as several ones."""
    found = _message(text)
    if found is not None:
        return found
    places = list(_SEPARATOR.finditer(text))
    for place in places:
        before, between, after = text[: place.start()], place[0], text[place.end() :]
        for separator, tail in ("", between + after), (_BETWEEN[between], after):
            found = _message(tail, is_piece=True) if " " in tail else None
            if found is not None:
                return _value(before) + separator + found
    for place in reversed(places):
        before, between, after = text[: place.start()], place[0], text[place.end() :]
        found = _message(before, is_piece=True) if " " in before else None
        if found is not None:
            return found + _BETWEEN[between] + _value(after)
    name, _, after = text.partition(" ")  # perhaps that of a file
    found = _message(after, is_piece=True) if after else None
    if found is not None:
        return f"{name} {found}"
    for between in ("; ", ": "):
        clauses = text.split(between)
        shown = list(map(_value, clauses)) if len(clauses) > 1 else clauses
        if shown != clauses:
            return _BETWEEN[between].join(shown)
    return _BETWEEN_FLAGS.sub(lambda found: f" {_BETWEEN[found[0]]}", text)


def _message(text, is_piece=False):
    """Returns the Chinese of a text that is one message, or None.

    Pieces of a text are no messages by a few letters: any text has some that look so.
    """
    fixed, templates = _catalogue()
    if text in fixed:
        return fixed[text]
    found = (each.in_chinese(text) for each in templates if not (is_piece and each.has_few))
    return next((chinese for chinese in found if chinese is not None), None)


def _value(text):
    """Returns a part of a message in Chinese; a single word may be a name, and stays."""
    return _line(text) if " " in text else text


def split(text, texts):
    """Returns what a text has between the `parts` of a template, each as short as it can be.

    Returns:
      A list of str, or None if the template does not fit.
    """
    first, *between, last = texts
    start, end = len(first), len(text) - len(last)
    if end < start or not text.startswith(first) or not text.endswith(last):
        return None
    values = []
    for part in between:
        place = text.find(part, start, end)
        if place < 0:
            return None
        values.append(text[start:place])
        start = place + len(part)
    return [*values, text[start:end]]
