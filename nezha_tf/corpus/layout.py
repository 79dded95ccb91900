"""Packs instances into rows of an array, many at a time."""

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Unmasked examples [CLS] A [SEP] B [SEP], padded with zeros.

    Attributes:
      ids: int32 [B, T].
      segment_ids: int32 [B, T].
      is_text: bool [B, T], False at special tokens and padding.
      word_starts: bool [B, T], whether a token of the text begins a unit of masking. The first
        token of a segment always does, so the rest of a truncated word is a unit too.
      lengths: int64 [B], special tokens included.
    """

    ids: np.ndarray
    segment_ids: np.ndarray
    is_text: np.ndarray
    word_starts: np.ndarray
    lengths: np.ndarray


class Layout:
    """Packs ranges of a shard's tokens into rows."""

    def __init__(self, vocabulary, max_seq_length, of_pairs):
        """Args:
        vocabulary: a `Vocabulary`.
        max_seq_length: length T of a row.
        of_pairs: whether the second range of a row is segment 1; if False, all are segment 0.
        """
        self._cls_id = vocabulary.cls_id
        self._sep_id = vocabulary.sep_id
        self._length = max_seq_length
        self._of_pairs = of_pairs

    def rows(self, tokens, starts, ends, counts):
        """Returns the `Rows` of B instances.

        Args:
          tokens: the `ShardTokens`.
          starts, ends: int64 [R], ranges of tokens; the ranges of an instance are adjacent.
          counts: int64 [B], the number of ranges of each instance.
        """
        sizes = ends - starts
        row_of_range = np.repeat(np.arange(len(counts)), counts)
        number_in_row = np.arange(len(sizes)) - np.repeat(np.cumsum(counts) - counts, counts)
        # The places of each range's first token and [SEP] in the flattened rows.
        used = np.cumsum(sizes + 1) - (sizes + 1)  # places used by earlier ranges
        used_in_row = used - np.repeat(used[number_in_row == 0], counts)
        begins = row_of_range * self._length + 1 + used_in_row
        separators = begins + sizes
        # For each token: its place in the flattened rows, and its index in `tokens`.
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        where = within + np.repeat(begins, sizes)
        source = within + np.repeat(starts, sizes)

        shape = len(counts), self._length
        ids = np.zeros(shape, np.int32)
        is_text, word_starts = np.zeros(shape, bool), np.zeros(shape, bool)
        segment_ids = np.zeros(shape, np.int32)
        ids[:, 0] = self._cls_id
        ids.reshape(-1)[separators] = self._sep_id
        ids.reshape(-1)[where] = tokens.ids[source]
        is_text.reshape(-1)[where] = True
        word_starts.reshape(-1)[where] = tokens.word_starts[source]
        word_starts.reshape(-1)[begins] = True
        if self._of_pairs:
            is_second = number_in_row == 1
            segment_ids.reshape(-1)[separators[is_second]] = 1
            segment_ids.reshape(-1)[where] = np.repeat(is_second, sizes)
        lengths = 1 + np.bincount(row_of_range, weights=sizes + 1, minlength=len(counts))
        return Rows(ids, segment_ids, is_text, word_starts, lengths.astype(np.int64))
