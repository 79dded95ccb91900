"""Words: segmenters that split a text into them, and the user's dictionary in jieba's format."""

import functools
import importlib.util
import re
from typing import NamedTuple

import numpy as np

from nezha_tf.text.jieba_words import JiebaWords
from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, install_command

SEGMENTERS = ("jieba", "rjieba")
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
    """Reads a dictionary in the format of jieba's `load_userdict`: UTF-8, spaces between fields.

    Words with a space, which jieba never finds, are passed over; their lines are appended to
    `passed_over`.

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
    """Finds the words of a dictionary in texts, from left to right, the longest at each place.

    Words of frequency 0 are ignored, because jieba never finds them.
    """

    def __init__(self, words):
        self._words = {word.text for word in words if word.frequency != 0}
        lengths = {}
        for word in self._words:
            lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}
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
                word = text[start : start + length]
                if word in self._words:
                    end = start + len(word)
                    yield start, end
                    break


def make_segmenter(name, words=()):
    """Returns an object that splits texts into words; raises a `UserError` if it is not installed.

    `segmenter(text)` returns a list of words, whose concatenation is the text; for many lines
    `segmenter.starts(lines)` is faster with jieba, see `JiebaWords`. `name` is "jieba" (the
    reference) or "rjieba", its port to Rust: 99.8 % of the words are equal. Both weigh the user's
    own words (`UserWord`) against others, so one of low frequency may still be split.
    """
    require_segmenter(name)
    if name == "rjieba":
        return _RustWords(words)
    return _jieba_of(words) if words else _plain_jieba()


def never_found(name, words):
    """Returns those of the user's words that a segmenter finds at no frequency, a list of str.

    Both segmenters split a text at other characters than letters, digits, ideographs and a few
    signs first, and look for words between them. `UserWord`s of frequency 0 are not looked for.
    """
    # More frequent than all words of the segmenters' own dictionary together.
    often = [UserWord(word.text, 10**8) for word in words if word.frequency != 0]
    if not often:
        return []
    texts = [word.text for word in often]
    begins = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]
    starts = make_segmenter(name, often).starts(texts)
    counts = np.add.reduceat(starts, begins, dtype=np.int64)  # with the line's end
    return [text for text, count in zip(texts, counts.tolist(), strict=True) if count > 2]


def require_segmenter(name):
    if importlib.util.find_spec(name) is None:
        raise UserError(
            f"--segmenter={name} needs {name}; install it with "
            f"{install_command('fast')}, or pass --segmenter=jieba"
        )


class _RustWords:
    """The words of rjieba, with the methods of `JiebaWords`."""

    def __init__(self, words):
        import rjieba

        self._segmenter = rjieba.Jieba()
        for word in words:
            self._segmenter.add_word(word.text, word.frequency, word.tag)

    def __call__(self, text):
        return self._segmenter.cut(text)

    def starts(self, lines):
        lengths = []
        for line in lines:
            lengths.extend(map(len, self._segmenter.cut(line)))
            lengths.append(1)  # the line's end
        starts = np.zeros(sum(lengths), bool)
        starts[np.cumsum([0, *lengths], dtype=np.int64)[:-1]] = True
        return starts


@functools.cache
def _plain_jieba():
    return JiebaWords(*_read_jieba_words())


def _read_jieba_words():
    """Returns (dict of jieba's words to their frequencies, the total of these).

    The file itself is read, not jieba's cache of it, which lies where other users can write.
    """
    import jieba

    with jieba.Tokenizer().get_dict_file() as file:
        fields = file.read().decode("utf-8").split()  # a word, its frequency, its part of speech
    counts = list(map(int, fields[1::3]))
    return dict(zip(fields[::3], counts, strict=True)), sum(counts)


def _jieba_of(words):
    import jieba

    tokenizer = jieba.Tokenizer()
    frequencies, tokenizer.total = _jieba_frequencies()
    tokenizer.FREQ = dict(frequencies)  # the user's words change it
    tokenizer.initialized = True
    never = [word.text for word in words if word.frequency == 0]
    for word in words:
        if word.frequency == 0:
            # add_word would also forbid the word to all other tokenizers of the process.
            tokenizer.FREQ[word.text] = 0
        else:
            tokenizer.add_word(*word)
    return JiebaWords(tokenizer.FREQ, tokenizer.total, never)


@functools.cache
def _jieba_frequencies():
    """Returns the same with the beginnings of words, which count 0, as `add_word` needs them."""
    import jieba

    tokenizer = jieba.Tokenizer()
    return tokenizer.gen_pfdict(tokenizer.get_dict_file())
