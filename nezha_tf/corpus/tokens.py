"""Converts the documents of a shard to flat arrays of tokens, with sentence and word starts."""

import collections
from typing import NamedTuple

import numpy as np

from nezha_tf.corpus.statistics import SEGMENTATION, Stopwatch
from nezha_tf.objectives.policies import POLICIES, UNMASKED, MaskingPolicy
from nezha_tf.text.bulk_tokenizer import BulkTokenizer
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.words import Entities, make_segmenter, read_user_dictionary

# Documents are tokenized together up to this many characters, which take about 20 MB.
CHARACTERS_AT_ONCE = 1 << 18


class ShardTokens(NamedTuple):
    """The tokens of documents, one document after another.

    Sentence s has the tokens bounds[s] to bounds[s + 1] - 1, at least one. The size of a token is
    the number of characters from its start to that of the next one, or to the end of the line.
    """

    ids: np.ndarray  # int32 [N]
    word_starts: np.ndarray  # bool [N], whether a token begins a unit of masking
    bounds: list  # S + 1 ints
    documents: list  # of (number in the corpus, first sentence, sentence after the last)
    sizes: np.ndarray  # int32 [N]
    characters: int  # of the text
    unknown_characters: collections.Counter  # those that the vocabulary lacks


class TokenReader:
    """Splits sentences into tokens and words, each sentence once.

    The segmenter splits the raw text into words. All tokens of a basic token (for example an ASCII
    word or number) belong to the word of its first character, so that a unit of masking never
    splits a basic token. With `--masking=entity`, and with `--masking=none` and a user dictionary,
    each entry of the dictionary in the text is one word, however the segmenter splits it.

    `clock` is a `Stopwatch` with the time of `SEGMENTATION`.
    """

    def __init__(self, settings, vocabulary):
        policy = MaskingPolicy(of_entities=bool(settings.user_dict))
        if settings.masking != UNMASKED:
            policy = POLICIES[settings.masking]
        tokenizer = FullTokenizer(vocabulary=vocabulary, do_lower_case=settings.do_lower_case)
        self._tokenizer = BulkTokenizer(tokenizer)
        self.clock = Stopwatch()
        self._segmenter = self._entities = None
        words = read_user_dictionary(settings.user_dict) if settings.user_dict else ()
        if policy.of_words:
            self._segmenter = make_segmenter(settings.segmenter, words)
        if policy.of_entities:
            self._entities = Entities(words)

    def read(self, documents):
        """Returns the `ShardTokens` of documents, (number in the corpus, list of sentences) each.

        Sentences and documents without tokens are left out.
        """
        ids, word_starts, sizes, bounds, kept = [], [], [], [np.zeros(1, np.int64)], []
        self._tokenizer.unknown_characters.clear()
        tokens = sentences = characters = 0
        for part in _parts(documents):
            lines = [line for _, lines in part for line in lines]
            line_tokens = self._tokenizer.tokenize(lines)
            ids.append(line_tokens.ids)
            word_starts.append(self._word_starts(lines, line_tokens))
            sizes.append(_sizes(lines, line_tokens))
            # A sentence without tokens has the same end as the sentence before it.
            ends = np.unique(line_tokens.line_ends[line_tokens.line_ends > 0])
            bounds.append(ends + tokens)
            characters += sum(map(len, lines))
            last_lines = np.cumsum([len(lines) for _, lines in part])
            last_tokens = np.concatenate([[0], line_tokens.line_ends])[last_lines]
            last_sentences = np.searchsorted(ends, last_tokens, side="right") + sentences
            for (number, _), end in zip(part, last_sentences.tolist(), strict=True):
                if end > sentences:
                    kept.append((number, sentences, end))
                    sentences = end
            tokens += len(line_tokens.ids)
        return ShardTokens(
            ids=np.concatenate([np.empty(0, np.int32), *ids]),
            word_starts=np.concatenate([np.empty(0, bool), *word_starts]),
            bounds=np.concatenate(bounds).tolist(),
            documents=kept,
            sizes=np.concatenate([np.empty(0, np.int32), *sizes]),
            characters=characters,
            unknown_characters=collections.Counter(self._tokenizer.unknown_characters),
        )

    def _word_starts(self, lines, line_tokens):
        if self._segmenter is None:
            return np.ones(len(line_tokens.ids), bool)
        with self.clock.stage(SEGMENTATION):
            begins = self._segmenter.starts(lines)
        if self._entities:
            self._join_entities(lines, begins)
        word_of_place = np.cumsum(begins)
        firsts = np.flatnonzero(line_tokens.begins_basic_token)
        words = word_of_place[line_tokens.places[firsts]]
        starts = np.zeros(len(line_tokens.ids), bool)
        starts[firsts] = np.diff(words, prepend=-1) != 0
        return starts

    def _join_entities(self, lines, begins):
        """Makes each entity one word, by changing `begins`, the starts of words."""
        offset = 0
        for line in lines:
            for start, end in self._entities.find(line):
                begins[offset + start : offset + end] = 0
                begins[offset + start] = begins[offset + end] = 1
            offset += len(line) + 1


def _sizes(lines, line_tokens):
    if not len(line_tokens.ids):
        return np.empty(0, np.int32)
    following = np.append(line_tokens.places[1:], 0)
    line_ends = np.cumsum([len(line) + 1 for line in lines]) - 1
    has_tokens = np.diff(line_tokens.line_ends, prepend=0) > 0
    following[line_tokens.line_ends[has_tokens] - 1] = line_ends[has_tokens]
    return (following - line_tokens.places).astype(np.int32)


def _parts(documents):
    """Yields lists of documents with about `CHARACTERS_AT_ONCE` characters together."""
    part, size = [], 0
    for number, lines in documents:
        part.append((number, lines))
        size += sum(map(len, lines))
        if size >= CHARACTERS_AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part
