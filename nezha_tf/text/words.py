"""Words: segmenters that split a text into them, and the user's dictionary in jieba's format."""

import functools
import importlib.util
import math
import re
from typing import NamedTuple

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
    """Returns a function that splits a text into a list of words, whose concatenation is the text.

    `name` is "jieba" (the reference) or "rjieba", its port to Rust: 99.8 % of the words are equal.
    Both weigh the user's own words (`UserWord`) against others, so one of low frequency may still
    be split. Raises a `UserError` if the segmenter is not installed.
    """
    require_segmenter(name)
    if name == "jieba":
        return _make_jieba(words)
    import rjieba

    segmenter = rjieba.Jieba()
    for word in words:
        segmenter.add_word(word.text, word.frequency, word.tag)
    return segmenter.cut


def never_found(name, words):
    """Returns those of the user's words that a segmenter finds at no frequency, a list of str.

    Both segmenters split a text at other characters than letters, digits, ideographs and a few
    signs first, and look for words between them. `UserWord`s of frequency 0 are not looked for.
    """
    # More frequent than all words of the segmenters' own dictionary together.
    often = [UserWord(word.text, 10**8) for word in words if word.frequency != 0]
    cut = make_segmenter(name, often)
    return [word.text for word in often if list(cut(word.text)) != [word.text]]


def require_segmenter(name):
    if importlib.util.find_spec(name) is None:
        raise UserError(
            f"--segmenter={name} needs {name}; install it with "
            f"{install_command('fast')}, or pass --segmenter=jieba"
        )


def _make_jieba(words):
    import jieba

    tokenizer = jieba.Tokenizer()
    frequencies, tokenizer.total = _jieba_frequencies()
    # A user's words change the table.
    tokenizer.FREQ = dict(frequencies) if words else frequencies
    tokenizer.initialized = True
    for word in words:
        if word.frequency == 0:
            # add_word would also forbid the word to all other tokenizers of the process.
            tokenizer.FREQ[word.text] = 0
        else:
            tokenizer.add_word(*word)
    return JiebaWords(tokenizer, (word.text for word in words if word.frequency == 0)).cut


@functools.cache
def _jieba_frequencies():
    """Reads jieba's dictionary, and not the cache of it, which lies where other users can write."""
    import jieba

    tokenizer = jieba.Tokenizer()
    return tokenizer.gen_pfdict(tokenizer.get_dict_file())


# Runs of these characters; jieba always splits at all other characters.
_BLOCKS = re.compile(r"([\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]+)")
_SPACE = re.compile(r"(\r\n|\s)")
_NAMES = re.compile("([\u4e00-\u9fd5]+)")
_NUMBERS = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")
_MOST_CACHED = 2**16  # bounds the cache's memory


class JiebaWords:
    """Splits text into words as `jieba.Tokenizer.lcut` does, in half the time.

    jieba (fxsjy/jieba 0.42) finds the most probable path through the words of a block; then a
    hidden Markov model of names splits runs of single characters again. The same sums are computed
    here in the same order, so the words are the same. But each dictionary entry is looked up once
    instead of three times, the states are unrolled, and the model's time is linear in the length of
    a run (jieba copies the path so far at each character).

    It takes an initialized `jieba.Tokenizer`, and words that the model must not find: jieba has one
    set of them for all tokenizers of a process (`finalseg.Force_Split_Words`), which is not read.
    """

    def __init__(self, tokenizer, never_names=()):
        from jieba import finalseg

        self._frequencies = tokenizer.FREQ
        self._log_total = math.log(tokenizer.total)
        self._never_names = frozenset(never_names)
        self._model = _NameModel(finalseg)
        self._parted = {}

    def cut(self, text):
        """Returns the words of a text, a list of str."""
        words = []
        for number, part in enumerate(_BLOCKS.split(text)):
            if number % 2:
                self._cut_block(part, words)
            elif part:
                for other in _SPACE.split(part):
                    words += [other] if _SPACE.match(other) else other
        return words

    def _cut_block(self, block, words):
        ends = self._best_ends(block)
        start = place = 0  # `start` is where the single characters before this word begin
        while place < len(block):
            end = ends[place]
            if end - place > 1:
                if start < place:
                    self._part_singles(block[start:place], words)
                words.append(block[place:end])
                start = end
            place = end
        if start < place:
            self._part_singles(block[start:], words)

    def _best_ends(self, block):
        """Returns, for each character, the end of the word that begins there on the best path."""
        get, log, log_total = self._frequencies.get, math.log, self._log_total
        size = len(block)
        best, ends = [0.0] * (size + 1), [0] * size
        for start in range(size - 1, -1, -1):
            highest = None
            end = start + 1
            frequency = get(block[start:end])
            while frequency is not None:  # a word; frequency 0: only the beginning of a word
                if frequency:
                    value = log(frequency) - log_total + best[end]
                    if highest is None or value >= highest:
                        highest, ends[start] = value, end
                if end == size:
                    break
                end += 1
                frequency = get(block[start:end])
            if highest is None:
                highest, ends[start] = 0.0 - log_total + best[start + 1], start + 1
            best[start] = highest
        return ends

    def _part_singles(self, run, words):
        if len(run) == 1:
            words.append(run)
        elif self._frequencies.get(run):
            words += run
        else:
            parted = self._parted.get(run)
            if parted is None:
                parted = self._part_names(run)
                if len(self._parted) < _MOST_CACHED:
                    self._parted[run] = parted
            words += parted

    def _part_names(self, run):
        words = []
        for number, part in enumerate(_NAMES.split(run)):
            if number % 2:
                for name in self._model.cut(part):
                    words += name if name in self._never_names else [name]
            else:
                words += filter(None, _NUMBERS.split(part))
        return words


class _NameModel:
    """Finds the most probable states of characters: begin, middle or end of a word, or single."""

    def __init__(self, finalseg):
        self._emissions = [finalseg.emit_P[state] for state in "BEMS"]
        self._lowest = finalseg.MIN_FLOAT
        self._starts = [finalseg.start_P[state] for state in "BEMS"]
        steps = finalseg.trans_P
        self._steps = [steps[a][b] for a, b in ("EB", "SB", "BE", "ME", "BM", "MM", "ES", "SS")]

    def cut(self, text):
        """Returns the words of a text of ideographs, a list of str."""
        lowest = self._lowest
        of_b, of_e, of_m, of_s = (table.get for table in self._emissions)
        eb, sb, be, me, bm, mm, es, ss = self._steps
        first = text[0]
        b, e, m, s = (
            start + table.get(first, lowest)
            for start, table in zip(self._starts, self._emissions, strict=True)
        )
        # For each character except the first, and each state, the best state before it.
        before = []
        for char in text[1:]:
            emission = of_b(char, lowest)
            from_e, from_s = e + eb + emission, s + sb + emission
            new_b, before_b = (from_s, "S") if from_s >= from_e else (from_e, "E")
            emission = of_e(char, lowest)
            from_b, from_m = b + be + emission, m + me + emission
            new_e, before_e = (from_m, "M") if from_m >= from_b else (from_b, "B")
            emission = of_m(char, lowest)
            from_b, from_m = b + bm + emission, m + mm + emission
            new_m, before_m = (from_m, "M") if from_m >= from_b else (from_b, "B")
            emission = of_s(char, lowest)
            from_e, from_s = e + es + emission, s + ss + emission
            new_s, before_s = (from_s, "S") if from_s >= from_e else (from_e, "E")
            b, e, m, s = new_b, new_e, new_m, new_s
            before.append({"B": before_b, "E": before_e, "M": before_m, "S": before_s})
        state = "S" if s >= e else "E"
        words, end = [], len(text)
        for place in range(len(text) - 1, -1, -1):
            if state in "BS":
                words.append(text[place:end])
                end = place
            if place:
                state = before[place - 1][state]
        return words[::-1]
