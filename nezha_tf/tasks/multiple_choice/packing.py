"""Questions as a model's examples: the context and each choice are a sequence of their own."""

import bisect
import functools

import numpy as np

from nezha_tf.data.choices import BLANK
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

SPECIAL_TOKENS = 4
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

    def __init__(self, vocabulary, max_seq_length):
        """Args:
          vocabulary: a `Vocabulary`.
          max_seq_length: most tokens of a sequence, special ones included.

        Raises:
          UserError: the length leaves no room for a token of each text.
        """
        self._vocabulary = vocabulary
        self._room = _room_of(max_seq_length, 3)
        self.num_truncated = 0

    def texts(self, question):
        """Returns the texts of a `ChoiceQuestion` that are tokenized, beside its choices."""
        return question.context, question.text

    def missing(self, question, ids):
        """Returns which text has no token, or None; `ids` is a dict of text to its ids."""
        named = {"the text": question.context, "the question": question.text}
        return next((name for name, text in named.items() if not len(ids[text])), None)

    def sequences(self, question, ids):
        """Returns a list of (ids, segment_ids), one for each choice of a `ChoiceQuestion`."""
        context, text = ids[question.context], ids[question.text]
        return [self(context, text, ids[choice]) for choice in question.choices]

    def __call__(self, context, question, choice):
        """Returns (ids, segment_ids), int32 [n], of three lists or arrays of ids."""
        texts = (context, choice, question)
        lengths = tuple(map(len, texts))
        kept = truncated_lengths(lengths, self._room)
        self.num_truncated += kept != lengths
        context, choice, question = (t[:n] for t, n in zip(texts, kept, strict=True))
        sep = [self._vocabulary.sep_id]
        parts = [[self._vocabulary.cls_id], context, sep, question, sep, choice, sep]
        ids = np.concatenate(parts).astype(np.int32)
        segment_ids = np.zeros(len(ids), np.int32)
        segment_ids[len(context) + 2 :] = 1
        return ids, segment_ids


class BlankPacking:
    """Packs [CLS] choice [SEP] left [unused1] right [SEP], as CLUE's program for ChID.

    `left` and `right` are the tokens around the blank. All segment ids are 0. Methods and
    attributes: see `QuestionPacking`.
    """

    def __init__(self, vocabulary, max_seq_length):
        self._vocabulary = vocabulary
        self._room = _room_of(max_seq_length, 2)
        self._blank = blank_id(vocabulary)
        self.num_truncated = 0

    def texts(self, question):
        return BLANK.split(question.context)

    def missing(self, question, ids):
        return None  # What is around a blank may be empty.

    def sequences(self, question, ids):
        sides = around_blank(question.context, question.blank, ids.__getitem__)
        return [self(*sides, ids[choice]) for choice in question.choices]

    def __call__(self, left, right, choice):
        """Returns (ids, segment_ids), int32 [n].

        Args:
          left, right: lists of the ids around the blank, `OTHER_BLANK` for another blank.
          choice: list or array of the ids of the choice.
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


def pack(questions, packing, tokenizer, paths, bad_rows):
    """Returns (the `Examples` of a list of `ChoiceQuestion`, a line on them).

    Args:
      questions: list of `ChoiceQuestion`, all with a question or all with a blank.
      packing: a new `QuestionPacking` or `BlankPacking`.
      tokenizer: `GraphTokenizer`.
      paths: their files, for messages.
      bad_rows: `BadRows`, which collects questions with a text that has no token.

    Raises:
      UserError: such a question, unless these are skipped; or no question is left.
    """
    texts = sorted({text for q in questions for text in (*packing.texts(q), *q.choices)})
    ids = dict(zip(texts, tokenizer.ids_of(texts), strict=True)) if texts else {}
    kept, sequences = [], []
    for question in questions:
        has_empty_choice = any(not len(ids[choice]) for choice in question.choices)
        missing = "a choice" if has_empty_choice else packing.missing(question, ids)
        if missing:
            bad_rows.add(f"{question.place}: {missing} has no tokens; write a text")
            continue
        kept.append(question)
        sequences.append(packing.sequences(question, ids))
    if not kept:
        raise UserError(f"{', '.join(paths)}: no question{bad_rows.note()}")
    least, most = min(map(len, sequences)), max(map(len, sequences))
    empty = np.zeros(0, np.int32)
    filled = [[*rows, *[(empty, empty)] * (most - len(rows))] for rows in sequences]
    names = ("input_ids", "segment_ids")
    arrays = {n: [[row[i] for row in rows] for rows in filled] for i, n in enumerate(names)}
    answers = [question.answer for question in kept]
    if None not in answers:
        arrays["label_ids"] = np.array(answers, np.int32)
    note = f"{', '.join(paths)}: {console.plural(len(kept), 'question')} with "
    note += f"{most} choices" if least == most else f"{least} to {most} choices"
    if packing.num_truncated:
        note += f"; too long, so truncated: {packing.num_truncated:,} choices"
    return Examples(kept, arrays, answers), note + bad_rows.note()


def around_blank(context, mark, ids_of):
    """Returns the ids before and after the first blank with a mark: two lists of int.

    Args:
      context: a text with this blank.
      mark: as of `ChoiceQuestion.blank`; other blanks become `OTHER_BLANK`.
      ids_of: function of a text that returns its ids.
    """
    marks, texts = BLANK.findall(context), BLANK.split(context)
    at = marks.index(mark) + 1

    def joined(texts):
        first, *others = map(ids_of, texts)
        return [*first, *(token for ids in others for token in (OTHER_BLANK, *ids))]

    return joined(texts[:at]), joined(texts[at:])


def blank_id(vocabulary):
    """Returns the id of [unused1], or of [MASK] if the vocabulary lacks it."""
    return vocabulary.ids_of([UNUSED])[0] if UNUSED in vocabulary else vocabulary.mask_id


def _room_of(max_seq_length, texts):
    """Returns the number of tokens that all texts of a sequence have together."""
    room = max_seq_length - SPECIAL_TOKENS
    if room < texts:
        raise UserError(
            f"--max_seq_length={max_seq_length} leaves no room for a token of each text: it must "
            f"be at least {SPECIAL_TOKENS + texts}"
        )
    return room


def truncated_lengths(lengths, room):
    """Returns the lengths of texts after truncation to `room` tokens together, a tuple.

    This equals removing the last token of the longest text again and again; of texts of the same
    length, of the first one (`_truncate_seq_tuple` of C3's program, with context, choice and
    question in this order).
    """

    def total(level):
        return sum(min(length, level) for length in lengths)

    # The level to which the long texts are cut; some of the later ones keep a token more.
    level = bisect.bisect(range(room + 1), room, key=total) - 1
    kept, spare = [min(length, level) for length in lengths], room - total(level)
    for index in reversed(range(len(lengths))):
        if spare and lengths[index] > level:
            kept[index] += 1
            spare -= 1
    return tuple(kept)


def around(left, right, room):
    """Returns how many tokens before and after a blank are kept, of `left` and `right` tokens.

    Half of the room is for each side, and what one side does not need is for the other
    (`add_tokens_for_around` of CLUE's program for ChID).
    """
    before = min(left, max(room // 2, room - right))
    return before, min(right, room - before)


@functools.cache
def _zeros(length):
    """Returns segment ids 0; sequences of a length share them, because ChID has millions."""
    zeros = np.zeros(length, np.int32)
    zeros.flags.writeable = False
    return zeros
