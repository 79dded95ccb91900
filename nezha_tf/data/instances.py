"""Sentence pairs for masked LM and next-sentence prediction, packed as the original packs them."""

import dataclasses
from typing import NamedTuple


class Sentence(NamedTuple):
    """The pieces of a sentence: their ids, and which of them begin a word."""

    ids: list[int]
    word_starts: list[bool]


@dataclasses.dataclass(frozen=True)
class Instance:
    """One training instance before padding.

    Attributes:
      input_ids: ids after masking, [CLS] A [SEP] B [SEP].
      segment_ids: 0 for [CLS] A [SEP], 1 for B [SEP].
      is_random_next: whether B comes from another document (next_sentence_labels 1).
      masked_lm_positions: rising positions of the predictions.
      masked_lm_ids: the pieces that stood there.
    """

    input_ids: list[int]
    segment_ids: list[int]
    is_random_next: bool
    masked_lm_positions: list[int]
    masked_lm_ids: list[int]


class InstanceMaker:
    """Makes instances of documents, in the order of random draws of the original.

    Follows `create_training_instances` of google-research/bert's create_pretraining_data.py.
    """

    def __init__(
        self, masking, cls_id, sep_id, max_seq_length, short_seq_prob, random_next_prob=0.5
    ):
        """Args:
        masking: callable (ids, word_starts, rng) as `masking.Masking`.
        cls_id, sep_id: ids of [CLS] and [SEP].
        max_seq_length: bound on the length of an instance, at least 5.
        short_seq_prob: how often a pass over a document aims at a random shorter length.
        random_next_prob: how often segment B is of another document, where there is a choice.
        """
        self._masking = masking
        self._cls_id = cls_id
        self._sep_id = sep_id
        self._max_pieces = max_seq_length - 3  # [CLS], [SEP], [SEP]
        self._short_seq_prob = short_seq_prob
        self._random_next_prob = random_next_prob

    def make(self, documents, dupe_factor, rng):
        """Makes the instances of all documents, each `dupe_factor` times, shuffled.

        Args:
          documents: list of lists of `Sentence`, none of them empty; shuffled in place.
          dupe_factor: how often each document is gone through, masked anew each time.
          rng: a `random.Random`.

        Returns:
          List of `Instance`.
        """
        rng.shuffle(documents)
        instances = []
        for _ in range(dupe_factor):
            for index in range(len(documents)):
                instances.extend(self._of_document(documents, index, rng))
        rng.shuffle(instances)
        return instances

    def _of_document(self, documents, index, rng):
        document = documents[index]
        target_length = self._max_pieces
        if rng.random() < self._short_seq_prob:
            target_length = rng.randint(2, self._max_pieces)
        chunk, chunk_length, position = [], 0, 0
        while position < len(document):
            chunk.append(document[position])
            chunk_length += len(document[position].ids)
            position += 1
            if position < len(document) and chunk_length < target_length:
                continue
            split = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            first = _join(chunk[:split])
            # The draw is made only where there is a choice, as in the original.
            is_random_next = len(chunk) == 1 or rng.random() < self._random_next_prob
            if is_random_next:
                wanted = target_length - len(first)
                second = _random_segment(documents, index, wanted, rng)
                position -= len(chunk) - split  # the unused sentences are packed again
            else:
                second = _join(chunk[split:])
            yield self._instance(first, second, is_random_next, rng)
            chunk, chunk_length = [], 0

    def _instance(self, first, second, is_random_next, rng):
        first, second = truncate_pair(first, second, self._max_pieces, rng)
        ids = [self._cls_id, *(p for p, _ in first), self._sep_id, *(p for p, _ in second)]
        ids.append(self._sep_id)
        word_starts = [True, *(s for _, s in first), True, *(s for _, s in second), True]
        segment_ids = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        input_ids, positions, labels = self._masking(ids, word_starts, rng)
        return Instance(input_ids, segment_ids, is_random_next, positions, labels)


def _join(sentences):
    """Returns the (id, begins a word) pairs of sentences in one list."""
    return [pair for sentence in sentences for pair in zip(*sentence, strict=True)]


def _random_segment(documents, index, wanted, rng):
    """Returns at least `wanted` pieces, where there are so many, from a random other document.

    Ten tries are made at another document, as in the original: a corpus of one document gives
    segments of that document, under the label "random".
    """
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    document = documents[other]
    start = rng.randint(0, len(document) - 1)
    segment = []
    for sentence in document[start:]:
        segment.extend(zip(*sentence, strict=True))
        if len(segment) >= wanted:
            break
    return segment


def truncate_pair(first, second, max_length, rng):
    """Shortens the longer of two lists, at a random end each time, to `max_length` together.

    Returns:
      (first, second), sliced; at equal length the second gives way, as in the original.
    """
    a_start, a_end, b_start, b_end = 0, len(first), 0, len(second)
    while (a_end - a_start) + (b_end - b_start) > max_length:
        from_front = rng.random() < 0.5
        if a_end - a_start > b_end - b_start:
            a_start, a_end = (a_start + 1, a_end) if from_front else (a_start, a_end - 1)
        else:
            b_start, b_end = (b_start + 1, b_end) if from_front else (b_start, b_end - 1)
    return first[a_start:a_end], second[b_start:b_end]
