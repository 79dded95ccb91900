"""Chooses the sentences of each example, as ranges of a shard's tokens, and packs them into rows.

An instance is (ranges, label): the ranges (start, end) of tokens, each followed by [SEP] in the
example, and the value of `next_sentence_labels`. All draws come from the caller's generator.
`PairPacker` with "nsp" draws in the order of the original, so the original's generator gives the
original's instances.
"""

import bisect
import collections
from typing import NamedTuple

import numpy as np

PACKED = "packed"
PAIRS = ("nsp", "sop", "none", "stream", PACKED)
# Examples of these kinds have one segment, and no next-sentence prediction.
SINGLE = ("none", "stream", PACKED)


class PairPacker:
    """Makes pairs of segments A and B of each document, with at most T - 3 tokens together.

    Sentences are collected until they reach a target length, and are split into A and B at a random
    sentence, as in `create_instances_from_document` of google-research/bert's
    create_pretraining_data.py. With `nsp`, half of the pairs (`random_next_prob`) get label 1:
    B becomes random sentences of another document of the shard, and the sentences after A are used
    again. With `sop` (ALBERT, arXiv 1909.11942 §3.1), A and B are swapped in half of the pairs
    (label 1). In a shard of one document, random segments come from that document, as they do in
    the original for a corpus of one document.

    A single sentence cannot be split between A and B. With `nsp`, B is then random, as in the
    original. With `sop`, the sentence is split at a random word; a sentence of one word gives no
    instance.
    """

    def __init__(self, tokens, pair, max_seq_length, short_seq_prob, random_next_prob):
        """Takes the `ShardTokens`, "nsp" or "sop", and the `Settings` of these names."""
        self._tokens = tokens
        self._of_chunk = {"nsp": self._next_sentence, "sop": self._sentence_order}[pair]
        self._max_tokens = max_seq_length - 3  # [CLS], [SEP], [SEP]
        self._short_seq_prob = short_seq_prob
        self._random_next_prob = random_next_prob

    def pack(self, index, rng):
        """Yields the instances of a document; `index` is its place in `tokens.documents`."""
        bounds = self._tokens.bounds
        _, first, last = self._tokens.documents[index]
        target = self._max_tokens
        if rng.random() < self._short_seq_prob:
            target = rng.randint(2, self._max_tokens)
        while first < last:
            # The fewest sentences that reach the target, or all remaining ones.
            end = bisect.bisect_left(bounds, bounds[first] + target, first + 1, last)
            split = first + (rng.randint(1, end - first - 1) if end - first >= 2 else 1)
            first, segments, label = self._of_chunk(index, first, split, end, target, rng)
            if segments:
                yield truncated(*segments, self._max_tokens, rng), label

    def _next_sentence(self, index, first, split, end, target, rng):
        """Returns (the next first sentence, (A, B), label) for the sentences `first` to `end`."""
        bounds = self._tokens.bounds
        a = bounds[first], bounds[split]
        # As in the original, nothing is drawn if there is no choice.
        if end - first == 1 or rng.random() < self._random_next_prob:
            return split, (a, self._random_segment(index, target - (a[1] - a[0]), rng)), 1
        return end, (a, (bounds[split], bounds[end])), 0

    def _sentence_order(self, index, first, split, end, target, rng):
        bounds = self._tokens.bounds
        place = bounds[split]
        if end - first == 1:
            inner = self._tokens.word_starts[bounds[first] + 1 : bounds[end]].nonzero()[0]
            if not len(inner):
                return end, None, 0
            place = bounds[first] + 1 + int(inner[rng.randint(0, len(inner) - 1)])
        segments = (bounds[first], place), (place, bounds[end])
        if rng.random() < self._random_next_prob:
            return end, segments[::-1], 1
        return end, segments, 0

    def _random_segment(self, index, wanted, rng):
        # As in the original, another document is drawn up to ten times; then the same one is taken.
        documents, bounds = self._tokens.documents, self._tokens.bounds
        for _ in range(10):
            other = rng.randint(0, len(documents) - 1)
            if other != index:
                break
        _, first, last = documents[other]
        first += rng.randint(0, last - first - 1)
        end = bisect.bisect_left(bounds, bounds[first] + wanted, first + 1, last)
        return bounds[first], bounds[end]


def truncated(first, second, max_length, rng):
    """Returns two ranges, truncated to `max_length` together, as in the original.

    One token after another is removed from the longer range, at a random end; if both have the
    same length, from the second.
    """
    (a, a_end), (b, b_end) = first, second
    for _ in range((a_end - a) + (b_end - b) - max_length):
        from_front = rng.random() < 0.5
        if a_end - a > b_end - b:
            a, a_end = (a + 1, a_end) if from_front else (a, a_end - 1)
        else:
            b, b_end = (b + 1, b_end) if from_front else (b, b_end - 1)
    return (a, a_end), (b, b_end)


def pack_full_sentences(tokens, max_seq_length, order):
    """Yields instances of full sentences, which may come from several documents (label 0).

    This is RoBERTa's FULL-SENTENCES (arXiv 1907.11692 §4.2): as many sentences as fit, with a
    [SEP] between documents, and no shorter examples on purpose. A sentence that is longer than an
    example is cut and continues in the next one. `order` has indices of `tokens.documents`.
    """
    bounds = tokens.bounds
    ranges, used = [], 1  # [CLS]
    for index in order:
        _, first, last = tokens.documents[index]
        place = bounds[first]
        while place < bounds[last]:
            room = max_seq_length - used - 1
            first = bisect.bisect_right(bounds, place + room, first, last + 1) - 1
            end = bounds[first]
            if end <= place and not ranges:
                end = place + room
            if end > place:
                ranges.append((place, end))
                used += end - place + 1
                place = end
            # There is no room for the next sentence, or for one more token and its [SEP].
            if place < bounds[last] or used + 2 > max_seq_length:
                yield tuple(ranges), 0
                ranges, used = [], 1
    if ranges:
        yield tuple(ranges), 0


def pack_texts(tokens, max_seq_length):
    """Yields instances whose ranges are texts that do not see each other (label 0).

    A document is one text, or, if it is too long for a row, several texts of full sentences, as
    many as fit; a sentence that is longer than a row is cut and continues in the next text. The
    texts of the shard, the longest first, each go into the row that they fill best (best-fit
    packing, Ding et al., arXiv 2404.10830 §3). Nothing is drawn.
    """
    bounds, room = tokens.bounds, max_seq_length - 2  # [CLS], [SEP]
    texts = [
        text
        for _, first, last in tokens.documents
        for text in full_sentences(bounds[first : last + 1], room)
    ]
    texts.sort(key=lambda text: text[0] - text[1])
    rows = []
    # The rows by the number of tokens that they still have room for, and these numbers in order.
    with_room, left = collections.defaultdict(list), []
    for start, end in texts:
        size = end - start + 2
        place = bisect.bisect_left(left, size)
        if place == len(left):
            row, space = [], max_seq_length
            rows.append(row)
        else:
            space = left[place]
            row = with_room[space].pop()
            if not with_room[space]:
                del left[place]
        row.append((start, end))
        space -= size
        if not with_room[space]:
            bisect.insort(left, space)
        with_room[space].append(row)
    for row in rows:
        yield tuple(row), 0


def full_sentences(bounds, room):
    """Yields the texts of a document as ranges (start, end) of at most `room` tokens.

    `bounds`, a list of int, are the first tokens of its sentences, and its end.
    """
    place = bounds[0]
    while place < bounds[-1]:
        end = bounds[bisect.bisect_right(bounds, place + room) - 1]
        if end <= place:
            end = place + room
        yield place, end
        place = end


class PackedRows(NamedTuple):
    """Unmasked examples [CLS] A [SEP] B [SEP], or [CLS] A [SEP] [CLS] B [SEP], padded with zeros.

    `word_starts` says whether a token of the text begins a unit of masking. The first token of a
    segment always does, so the rest of a truncated word is a unit too.
    """

    ids: np.ndarray  # int32 [B, T]
    segment_ids: np.ndarray  # int32 [B, T]
    is_text: np.ndarray  # bool [B, T], False at special tokens and padding
    word_starts: np.ndarray  # bool [B, T]
    lengths: np.ndarray  # int64 [B], special tokens included
    text_ids: np.ndarray  # int32 [B, T], see `schema.TEXT_IDS`; 1 for all tokens if not packed


def pack_rows(tokens, starts, ends, counts, vocabulary, max_seq_length, pair):
    """Returns the `PackedRows` of B instances.

    Args:
      tokens: the `ShardTokens`.
      starts, ends: int64 [R], ranges of tokens; the ranges of an instance are adjacent.
      counts: int64 [B], the number of ranges of each instance.
      vocabulary, max_seq_length: the `Vocabulary`, and T.
      pair: one of `PAIRS`. If it is not in `SINGLE`, the second range of a row is segment 1; if it
        is `PACKED`, each range begins with [CLS].
    """
    sizes = ends - starts
    row_of_range = np.repeat(np.arange(len(counts)), counts)
    number_in_row = np.arange(len(sizes)) - np.repeat(np.cumsum(counts) - counts, counts)
    has_cls = (number_in_row == 0) | (pair == PACKED)
    # The places of each range's first token and [SEP] in the flattened rows.
    widths = has_cls + sizes + 1
    used = np.cumsum(widths) - widths  # places used by earlier ranges
    used_in_row = used - np.repeat(used[number_in_row == 0], counts)
    begins = row_of_range * max_seq_length + has_cls + used_in_row
    separators = begins + sizes
    # For each token: its place in the flattened rows, and its index in `tokens`.
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    where = within + np.repeat(begins, sizes)
    source = within + np.repeat(starts, sizes)

    shape = len(counts), max_seq_length
    ids = np.zeros(shape, np.int32)
    is_text, word_starts = np.zeros(shape, bool), np.zeros(shape, bool)
    segment_ids = np.zeros(shape, np.int32)
    ids.reshape(-1)[begins[has_cls] - 1] = vocabulary.cls_id
    ids.reshape(-1)[separators] = vocabulary.sep_id
    ids.reshape(-1)[where] = tokens.ids[source]
    is_text.reshape(-1)[where] = True
    word_starts.reshape(-1)[where] = tokens.word_starts[source]
    word_starts.reshape(-1)[begins] = True
    if pair not in SINGLE:
        is_second = number_in_row == 1
        segment_ids.reshape(-1)[separators[is_second]] = 1
        segment_ids.reshape(-1)[where] = np.repeat(is_second, sizes)
    lengths = np.bincount(row_of_range, weights=widths, minlength=len(counts)).astype(np.int64)
    text_ids = (np.arange(max_seq_length) < lengths[:, None]).astype(np.int32)
    if pair == PACKED:
        # A text begins at its [CLS], so counting these numbers the texts.
        text_ids *= np.cumsum(ids == vocabulary.cls_id, axis=1, dtype=np.int32)
    return PackedRows(ids, segment_ids, is_text, word_starts, lengths, text_ids)
