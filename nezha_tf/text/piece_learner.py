"""Learns the tokens of words that are not Chinese: those of tensorflow-text's learner, but sooner.

The learner (`tensorflow_text.tools.wordpiece_vocab.wordpiece_tokenizer_learner_lib`, with its
default values) works in rounds. It cuts words at the tokens of the last round, in the first round
at every character. It counts all substrings that begin at a cut, takes the count of each from the
counts of its prefixes, longest first, and keeps what still has at least a threshold. A substring
that does not end with its word is a prefix of one that does, which takes its whole count away. So
only the rests of words, from a cut to the word's end, can be kept. This module counts nothing else,
and it cuts each different rest once. The tests compare the tokens with the learner's own.
"""

import bisect
import collections
import math

from nezha_tf.util import console

JOINER = "##"
ROUNDS = 4
LONGEST_WORD = 50  # longer words are left out
MOST_CHARACTERS = 1_000  # words with rarer characters are left out
MOST_WORDS = 5_000_000


class PieceLearner:
    """Learns the tokens of words, (word, count) by falling count, by a threshold or a bound.

    Attributes:
      words: list of (word, its count): those that are not left out.
      alphabet: set of their characters; each makes two tokens, one of them with "##".
    """

    def __init__(self, counts):
        self._most = counts[0][1]
        counts = [(word, count) for word, count in counts if len(word) <= LONGEST_WORD]
        self.words = of_common_characters(counts, MOST_CHARACTERS)[:MOST_WORDS]
        self.alphabet = {char for word, _ in self.words for char in word}
        self._rests = collections.Counter()
        for word, count in self.words:
            for start in range(1, len(word)):
                self._rests[word[start:]] += count

    def within(self, size):
        """Returns the tokens at the lowest threshold that gives no more than `size` of them.

        Thresholds are 2, 3 and so on; from 8 on each is by a quarter higher than the last. If there
        are too many tokens at the first one above all counts, the first `size` of these are
        returned.
        """
        for threshold in console.progress(self._thresholds(), desc="learning", unit="threshold"):
            tokens = self.at(threshold, size)
            if tokens is not None:
                return tokens
        return self.at(threshold)[:size]

    def _thresholds(self):
        threshold = 2
        while threshold <= self._most:
            yield threshold
            threshold = max(threshold + 1, int(threshold * 1.25))
        # Above the highest count, the learner takes the middle between it and the threshold.
        yield (self._most + threshold) // 2

    def at(self, threshold, size=None):
        """Returns the tokens at a threshold, or None if there are more than `size` of them.

        They are a list of str: all characters by code point, then tokens by falling count. Tokens
        that continue a word begin with "##".
        """
        # What begins a word is the same in all rounds: frequent words, and characters.
        number = bisect.bisect_right(self.words, -threshold, key=lambda pair: -pair[1])
        whole = dict(self.words[:number])
        beginnings = self.alphabet | whole.keys()
        room = math.inf if size is None else size - len(beginnings)
        if len(self.alphabet) > room:
            return None
        first_rests = _first_rests(self.words[number:], beginnings)
        # Each round counts these rests, and others.
        if len(self._kept(first_rests, threshold)) > room:
            return None
        rests = self._rests
        for _ in range(ROUNDS - 1):
            rests = _cut(first_rests, self._kept(rests, threshold))
        if len(self._kept(rests, threshold)) > room:
            return None
        counts = {JOINER + char: 1 for char in self.alphabet}
        counts.update((JOINER + r, count) for r, count in rests.items() if count >= threshold)
        counts.update((word, count) for word, count in whole.items() if word not in self.alphabet)
        return sorted(self.alphabet) + sorted(counts, key=lambda token: (-counts[token], token))

    def _kept(self, rests, threshold):
        return self.alphabet.union(r for r, count in rests.items() if count >= threshold)


def of_common_characters(counts, most):
    """Returns the (word, count) pairs of words made of the `most` most frequent characters."""
    characters = collections.Counter()
    for word, count in counts:
        for char in word:
            characters[char] += count
    common = sorted(characters, key=lambda char: (-characters[char], char))[:most]
    is_common = set(common).issuperset
    return [(word, count) for word, count in counts if is_common(word)]


def _first_rests(words, beginnings):
    """Counts what is left of words after the longest token that begins each."""
    rests = collections.Counter()
    for word, count in words:
        rest = word[_longest(word, beginnings) :]
        if rest:
            rests[rest] += count
    return rests


def _cut(first_rests, inner):
    """Returns the counts of all rests when words are cut into the longest tokens.

    `first_rests` are counts without the rests of rests; `inner`, the tokens without "##", with all
    characters.
    """
    counts = collections.Counter(first_rests)
    by_length = [[] for _ in range(LONGEST_WORD)]
    for rest in first_rests:
        by_length[len(rest)].append(rest)
    # The count of a rest is complete when all longer ones have been cut.
    for length in range(LONGEST_WORD - 1, 1, -1):
        for rest in by_length[length]:
            if rest in inner:
                continue
            left = rest[_longest(rest, inner) :]
            if left not in counts:
                by_length[len(left)].append(left)
            counts[left] += counts[rest]
    return counts


def _longest(text, tokens):
    end = len(text)
    while text[:end] not in tokens:
        end -= 1
    return end
