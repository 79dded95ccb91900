"""jieba's words for many lines at a time, on arrays."""

import itertools
import math
import re
import string

import numpy as np

from nezha_tf.text import name_model
from nezha_tf.text.word_trie import WordTrie

# jieba looks for words in runs of these characters, and always splits at all others.
_SIGNS = string.ascii_letters + string.digits + "+#&._%-"
_FIRST_IDEOGRAPH = len(_SIGNS) + 1
_MOST = _FIRST_IDEOGRAPH + name_model.LAST - name_model.FIRST
_NUMBERS = re.compile(r"[a-zA-Z0-9]+(?:\.\d+)?%?")
# Characters that are segmented together, about. More take more memory, and little less time.
_AT_ONCE = 1 << 16
# After so many steps from the ends of blocks, all that go on are taken one by one, in Python, if
# they are fewer than this: a step in NumPy takes as long as one of so many blocks.
_STEPS_TOGETHER, _FEW_BLOCKS = 512, 16


class JiebaWords:
    """Splits text into words as `jieba.Tokenizer.lcut` does.

    jieba (fxsjy/jieba 0.42) finds the most probable path through the words of a block; then a
    hidden Markov model of names splits runs of single characters again. The same sums are computed
    here in the same order, so the words are the same. But all lines go together: a step of the path
    is one for all blocks, from their ends.

    Args:
      frequencies: dict of word to its frequency, with all that jieba's tokenizer has (`FREQ`).
      total: of the frequencies, as the tokenizer counts it (`total`).
      never_names: words that the model must not find. jieba has one set of them for all tokenizers
        of a process (`finalseg.Force_Split_Words`), which is not read.
    """

    def __init__(self, frequencies, total, never_names=()):
        self._numbers = np.zeros(0x110000, np.uint16)  # of characters; 0: jieba splits there
        self._numbers[list(map(ord, _SIGNS))] = np.arange(1, _FIRST_IDEOGRAPH)
        ideographs = np.arange(_FIRST_IDEOGRAPH, _MOST + 1)
        self._numbers[name_model.FIRST : name_model.LAST + 1] = ideographs
        log_total = math.log(total)
        self._trie = self._make_trie(frequencies, log_total)
        scores = self._trie.single_scores
        self._is_word = scores > -np.inf
        # jieba counts a character that is no word as one of frequency 1.
        self._single_scores = np.where(self._is_word, scores, 0.0 - log_total)
        self._model = name_model.NameModel()
        self._never_names = frozenset(never_names)

    def _make_trie(self, frequencies, log_total):
        words = [word for word, frequency in frequencies.items() if frequency]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        characters = self._numbers[_code_points("".join(words))]
        is_found = np.minimum.reduceat(characters, np.cumsum(lengths) - lengths) > 0
        numbers, which = np.unique([frequencies[word] for word in words], return_inverse=True)
        # math.log is jieba's; that of NumPy may differ in the last bit.
        logs = np.array([math.log(number) for number in numbers.tolist()])
        return WordTrie(
            characters[np.repeat(is_found, lengths)],
            lengths[is_found],
            (logs[which] - log_total)[is_found],
            _MOST,
        )

    def __call__(self, text):
        """Returns the words of a text, a list of str, whose concatenation is the text."""
        places = np.flatnonzero(self.starts([text])).tolist()
        return [text[start:end] for start, end in itertools.pairwise(places)]

    def starts(self, lines):
        """Returns the starts of the words of lines, bool [N], in the lines with an end of each.

        An end is one character, and a word of its own; no word goes over it.
        """
        text = "\n".join([*lines, ""])
        codes = _code_points(text)
        characters = self._numbers[codes]
        starts = np.ones(len(text), bool)
        starts[1:] = (codes[1:] != ord("\n")) | (codes[:-1] != ord("\r"))
        starts[np.cumsum([len(line) + 1 for line in lines], dtype=np.int64) - 1] = True
        gaps = np.flatnonzero(characters == 0)
        start = 0
        while start < len(text):
            # The last gap has no place after it, but it is the end of the text.
            end = gaps[min(np.searchsorted(gaps, start + _AT_ONCE), len(gaps) - 1)] + 1
            part = slice(start, end)
            self._mark_words(text[part], codes[part], characters[part], starts[part])
            start = end
        return starts

    def _mark_words(self, text, codes, characters, starts):
        """Sets `starts` in the blocks of a text whose last character is outside of blocks."""
        firsts, ends = _edges(characters > 0)
        if not len(firsts):
            return
        found = list(self._trie.find(characters))
        sizes = self._best_sizes(characters, firsts, ends, found)
        starts[characters > 0] = False
        _follow(sizes, characters, firsts, starts)
        runs = _runs_of_singles(characters, starts, found)
        is_ideograph = characters >= _FIRST_IDEOGRAPH
        self._mark_names(text, codes, runs & is_ideograph, starts)
        _mark_numbers(codes, runs & ~is_ideograph, starts)

    def _best_sizes(self, characters, firsts, ends, found):
        """Returns the length of the word that begins at each character on the best path, int64."""
        words = self._words(characters, found)
        steps = np.zeros(len(characters), np.int64)  # the distance to the end of the block
        inside = np.flatnonzero(characters)
        steps[inside] = np.repeat(ends, ends - firsts) - inside
        steps = steps.astype(np.min_scalar_type(steps.max()))  # sorted sooner
        order = np.argsort(steps[words[0]], kind="stable")
        best = np.full(len(characters), -np.inf)
        best[ends] = 0
        _fill(best, *(array[order] for array in words), steps, ends - firsts)
        sizes = np.ones(len(characters), np.int64)
        for length, places, scores in found:
            # Of paths as probable, jieba takes that with the longest word.
            sizes[places[scores + best[places + length] == best[places]]] = length
        return sizes

    def _words(self, characters, found):
        """Returns (starts, ends, scores) of all words between which the path chooses."""
        # jieba takes a character that is no word for one where no other word begins.
        is_choice = characters > 0
        for _, places, _ in found:
            is_choice[places] = False
        singles = np.flatnonzero(is_choice | self._is_word[characters])
        starts = np.concatenate([singles, *(places for _, places, _ in found)])
        ends = np.concatenate([singles + 1, *(places + length for length, places, _ in found)])
        scores = [self._single_scores[characters[singles]], *(scores for _, _, scores in found)]
        return starts, ends, np.concatenate(scores)

    def _mark_names(self, text, codes, is_name, starts):
        places = np.flatnonzero(is_name)
        if not len(places):
            return
        firsts, ends = _edges(is_name)
        ideographs = codes[places].astype(np.int64) - name_model.FIRST
        starts[places] = self._model.word_starts(ideographs, ends - firsts)
        if not self._never_names:
            return
        bounds = np.flatnonzero(starts)
        begins = np.flatnonzero(starts & is_name)
        ends = bounds[np.searchsorted(bounds, begins) + 1]
        for start, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if text[start:end] in self._never_names:
                starts[start:end] = True


def _code_points(text):
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _edges(mask):
    """Returns (starts, ends) of the runs of True, int64 each."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return edges[::2], edges[1::2]


def _fill(best, starts, ends, scores, steps, block_lengths):
    """Sets `best` at each character: the log probability of the best path to the block's end.

    The words (starts, ends, scores) are in ascending order of `steps` at their starts.
    """
    counts = np.bincount(steps[starts])
    bounds = np.cumsum(counts).tolist()
    many = np.sort(block_lengths)[-_FEW_BLOCKS] if len(block_lengths) >= _FEW_BLOCKS else 0
    together = min(len(counts), max(_STEPS_TOGETHER, many))
    for start, end in itertools.pairwise(bounds[:together]):
        part = slice(start, end)
        np.maximum.at(best, starts[part], scores[part] + best[ends[part]])
    if together < len(counts):
        rest = slice(bounds[together - 1], None)
        values = best.tolist()
        words = zip(starts[rest].tolist(), ends[rest].tolist(), scores[rest].tolist(), strict=True)
        for start, end, score in words:
            value = score + values[end]
            if value > values[start]:
                values[start] = value
        best[:] = values


def _follow(sizes, characters, firsts, starts):
    """Marks the words of the paths from the beginnings of blocks."""
    places = firsts
    for _ in range(_STEPS_TOGETHER):
        starts[places] = True
        places = places + sizes[places]
        places = places[characters[places] > 0]
        if not len(places):
            return
    sizes, is_outside = sizes.tolist(), (characters == 0).tolist()
    marked = []
    for place in places.tolist():
        while not is_outside[place]:
            marked.append(place)
            place += sizes[place]
    starts[marked] = True


def _runs_of_singles(characters, starts, found):
    """Returns where words of one character stand together that are no word together, bool."""
    is_single = characters > 0
    is_single[:-1] &= starts[:-1] & starts[1:]
    firsts, ends = _edges(is_single)
    lengths = np.zeros(len(characters), np.int64)
    lengths[firsts] = ends - firsts
    for length, places, _ in found:
        lengths[places[lengths[places] == length]] = 0
    is_kept = lengths[firsts] > 1
    change = np.zeros(len(characters) + 1, np.int8)
    change[firsts[is_kept]], change[ends[is_kept]] = 1, -1
    return np.cumsum(change[:-1], dtype=np.int8).view(bool)


def _mark_numbers(codes, is_sign, starts):
    """Parts runs of letters, digits and signs into numbers, words and what lies between them."""
    firsts, ends = _edges(is_sign)
    if not len(firsts):
        return
    starts[is_sign] = False
    starts[firsts] = True
    is_kept = is_sign.copy()
    is_kept[ends] = True  # one character between the runs
    kept = np.flatnonzero(is_kept)
    runs = np.where(is_sign[kept], codes[kept], ord(" ")).astype(np.uint8).tobytes().decode("ascii")
    bounds = [bound for match in _NUMBERS.finditer(runs) for bound in match.span()]
    starts[kept[bounds]] = True
