"""The documentation as the tests read it: pages, and the blocks of code in them."""

import re
import shlex
from typing import NamedTuple

from conftest import REPOSITORY

MARK = "<!-- test: run -->"
LANGUAGES = ("en", "zh")
# Pages at the top of the repository, English and Chinese.
TOP = (("README.md", "README.zh.md"), ("CONTRIBUTING.md", "CONTRIBUTING.zh.md"))

_BLOCK = re.compile(
    rf"^(?P<mark>{re.escape(MARK)}\n)?(?P<fence>```)(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

_ENDS = ";&|<>\n"


class Block(NamedTuple):
    """A fenced block: its language, its text, its line, and whether the tests run it."""

    language: str
    text: str
    line: int
    is_run: bool


def pairs():
    """Returns (English path, Chinese path) of all pages, relative to the repository."""
    english = sorted(path.name for path in (REPOSITORY / "docs" / "en").glob("*.md"))
    return [*TOP, *((f"docs/en/{name}", f"docs/zh/{name}") for name in english)]


def pages():
    """Returns the paths of all pages, relative to the repository."""
    return [path for pair in pairs() for path in pair]


def read(page):
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(page, language=None):
    """Returns the `Block`s of a page, of one language or of all."""
    text = read(page)
    found = [
        Block(
            match["language"],
            match["text"],
            text.count("\n", 0, match.start("fence")) + 1,
            bool(match["mark"]),
        )
        for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if language in (None, block.language)]


def commands(page):
    """Returns (line of the block, words) of each shell command of a page."""
    return [command for block in blocks(page, "bash") for command in commands_of(block)]


def commands_of(block):
    """Returns (line of the block, words) of each of its commands."""
    # A line's end is punctuation, too: it ends a command.
    lexer = shlex.shlex(block.text.replace("\\\n", " "), posix=True, punctuation_chars=_ENDS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    found, words = [], []
    for word in lexer:
        if set(word) <= set(_ENDS):
            found += [(block.line, words)] * bool(words)
            words = []
        else:
            words.append(word)
    return found
