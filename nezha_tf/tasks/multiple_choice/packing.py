"""Packs a context and each choice into a sequence of its own."""

import functools

import numpy as np

from nezha_tf.util.errors import UserError

# It stands for the blank; every vocabulary of BERT has it.
UNUSED = "[unused1]"
# An id that stands for another blank of a passage.
OTHER_BLANK = -1
# In place of each other blank of a passage: as many [MASK] as an idiom has characters.
OTHER_BLANK_TOKENS = 4


class QuestionPacking:
    """Packs [CLS] context [SEP] question [SEP] choice [SEP], as the original program of C3.

    The segment ids are 1 from the question on. What is too long is cut by `truncated_lengths`.

    Attributes:
      num_truncated: number of sequences that were cut so far.
    """

    special_tokens = 4

    def __init__(self, vocabulary, max_seq_length):
        """Args:
          vocabulary: a `Vocabulary`.
          max_seq_length: most tokens of a sequence, special ones included.

        Raises:
          UserError: the length leaves no room for a token of each text.
        """
        self._vocabulary = vocabulary
        self._room = room_of(max_seq_length, self.special_tokens, 3)
        self.num_truncated = 0

    def __call__(self, context, question, choice):
        """Returns (ids, segment_ids), int32 [n], of three lists or arrays of ids."""
        texts = (context, choice, question)
        lengths = tuple(map(len, texts))
        kept = truncated_lengths(lengths, self._room)
        self.num_truncated += kept != lengths
        context, choice, question = (t[:n] for t, n in zip(texts, kept, strict=True))
        sep = [self._vocabulary.sep_id]
        first = [[self._vocabulary.cls_id], context, sep]
        second = [question, sep, choice, sep]
        return _joined(first, second)


class BlankPacking:
    """Packs [CLS] choice [SEP] left [unused1] right [SEP], as CLUE's program for ChID.

    `left` and `right` are the tokens around the blank. All segment ids are 0.

    Attributes:
      num_truncated: number of sequences so far whose context was cut.
    """

    special_tokens = 4

    def __init__(self, vocabulary, max_seq_length):
        """As of `QuestionPacking`."""
        self._vocabulary = vocabulary
        self._room = room_of(max_seq_length, self.special_tokens, 2)
        self._blank = blank_id(vocabulary)
        self.num_truncated = 0

    def __call__(self, left, right, choice):
        """Returns (ids, segment_ids), int32 [n].

        Args:
          left, right: lists or arrays of the ids around the blank; `OTHER_BLANK` stands for
            another blank.
          choice: the same of the choice.
        """
        vocabulary = self._vocabulary
        choice = choice[: self._room - 1]
        before, after = around(len(left), len(right), self._room - len(choice))
        self.num_truncated += before < len(left) or after < len(right)
        # As in the original, another blank counts as one token when the window is chosen, and
        # what is then too much is cut at the window's edges.
        left = self._with_masks(left[len(left) - before :])
        right = self._with_masks(right[:after])[:after]
        left = left[len(left) - before :]
        sep = [vocabulary.sep_id]
        parts = [[vocabulary.cls_id], choice, sep, left, [self._blank], right, sep]
        ids = np.concatenate(parts).astype(np.int32)
        return ids, _zeros(len(ids))

    def _with_masks(self, ids):
        masks = [self._vocabulary.mask_id] * OTHER_BLANK_TOKENS
        return [token for i in ids for token in (masks if i == OTHER_BLANK else [i])]


def blank_id(vocabulary):
    """Returns the id of [unused1], or of [MASK] if the vocabulary lacks it."""
    return vocabulary.ids_of([UNUSED])[0] if UNUSED in vocabulary else vocabulary.mask_id


def room_of(max_seq_length, special_tokens, texts):
    """Returns the number of tokens that all texts of a sequence have together.

    Raises:
      UserError: there is no room for a token of each of `texts` texts.
    """
    room = max_seq_length - special_tokens
    if room < texts:
        raise UserError(
            f"--max_seq_length={max_seq_length} leaves no room for a token of each text: it must "
            f"be at least {special_tokens + texts}"
        )
    return room


def truncated_lengths(lengths, room):
    """Returns the lengths of texts after truncation to `room` tokens together, a tuple.

    This equals removing the last token of the longest text again and again; of texts of the same
    length, of the first one (`_truncate_seq_tuple` of C3's program, with context, choice and
    question in this order).

    Args:
      lengths: tuple of ints.
      room: int.
    """
    if sum(lengths) <= room:
        return tuple(lengths)
    # The level to which the long texts are cut; some of the later ones keep a token more.
    left = room
    for shorter, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - shorter)
        if length > level:
            break
        left -= length
    kept = [min(length, level) for length in lengths]
    spare = room - sum(kept)
    for index in reversed(range(len(lengths))):
        if spare and lengths[index] > level:
            kept[index] += 1
            spare -= 1
    return tuple(kept)


def around(left, right, room):
    """Returns how many tokens before and after a blank are kept: (int, int).

    Half of the room is for each side, and what one side does not need is for the other
    (`add_tokens_for_around` of CLUE's program for ChID).

    Args:
      left, right: numbers of tokens before and after the blank.
      room: most tokens of both.
    """
    before = min(left, max(room // 2, room - right))
    return before, min(right, room - before)


@functools.cache
def _zeros(length):
    """Returns segment ids 0; sequences of a length share them, because ChID has millions."""
    zeros = np.zeros(length, np.int32)
    zeros.flags.writeable = False
    return zeros


def _joined(first, second):
    """Returns (ids, segment_ids) of lists of parts; the segment ids of the second are 1."""
    ids = np.concatenate([*first, *second]).astype(np.int32)
    segment_ids = np.zeros(len(ids), np.int32)
    segment_ids[sum(map(len, first)) :] = 1
    return ids, segment_ids
