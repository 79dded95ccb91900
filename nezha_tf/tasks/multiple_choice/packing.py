"""Questions as a model's examples: the context and each choice are a sequence of their own."""

import itertools

import numpy as np
import tensorflow as tf

from nezha_tf.data.choices import BLANK, ONE_BLANK
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.text.graph_tokenizer import each_row
from nezha_tf.text.packing import Packing, bert_parts, heads, pack_all
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

# It stands for the blank; every vocabulary of BERT has it.
UNUSED = "[unused1]"
# An id that stands for another blank of a passage.
OTHER_BLANK = -1
# In place of each other blank of a passage: as many [MASK] as an idiom has characters.
OTHER_BLANK_TOKENS = 4
# `data.choices.BLANK` in the syntax of RE2.
_ANY_BLANK = r"#idiom\p{Nd}*#"


class QuestionPacking(Packing):
    """Packs [CLS] context [SEP] question [SEP] choice [SEP], as the original program of C3.

    The segment ids are 1 from the question on. What is too long is cut by `truncated` in the order
    context, choice, question (`_truncate_seq_tuple` of C3's program).
    """

    def __init__(self, vocabulary, max_seq_length):
        """Args:
          vocabulary: a `Vocabulary`.
          max_seq_length: most tokens of a sequence, special ones included.

        Raises:
          UserError: the length leaves no room for a token of each text.
        """
        parts = [*bert_parts(vocabulary, 0, 1), (2, 1), ([vocabulary.sep_id], 1)]
        super().__init__(parts, max_seq_length, order=(0, 2, 1))

    def texts(self, question):
        """Returns the two texts of a `ChoiceQuestion` that stand beside each of its choices."""
        return question.context, question.text

    def ids_of(self, reader, texts):
        """Returns the ids of these texts, string [B], RaggedTensor [B, (n)], by a `TextReader`."""
        return reader.ids(texts)

    def missing(self, context, question):
        """Returns which of these texts, given as ids, has no token, or None."""
        return "the text" if not len(context) else None if len(question) else "the question"


class BlankPacking(Packing):
    """Packs [CLS] choice [SEP] left [unused1] right [SEP], as CLUE's program for ChID.

    `left` and `right` are the tokens around the blank. All segment ids are 0. Methods: see
    `QuestionPacking`.
    """

    def __init__(self, vocabulary, max_seq_length):
        self._mask_id = vocabulary.mask_id
        blank = vocabulary.ids_of([UNUSED])[0] if UNUSED in vocabulary else vocabulary.mask_id
        parts = [*bert_parts(vocabulary, 2), (0, 0), ([blank], 0), (1, 0), ([vocabulary.sep_id], 0)]
        super().__init__(parts, max_seq_length, order=(2, 0, 1))

    def texts(self, question):
        blank = next(b for b in BLANK.finditer(question.context) if b[0] == question.blank)
        return question.context[: blank.start()], question.context[blank.end() :]

    def ids_of(self, reader, texts):
        texts = tf.strings.regex_replace(texts, _ANY_BLANK, ONE_BLANK)
        return reader.ids_with(texts, ONE_BLANK, OTHER_BLANK)

    def missing(self, left, right):
        return None  # What is around a blank may be empty.

    def cut(self, left, right, choice):
        """Returns the texts, cut so that they have room.

        Half of what the choice leaves is for each side, and what one side does not need is for the
        other (`add_tokens_for_around` of CLUE's program). As there, another blank counts as one
        token when the window is chosen, and what is then too much is cut at the window's edges.
        """
        choice = heads(choice, self.room - 1)
        room = self.room - choice.row_lengths()
        before = tf.minimum(left.row_lengths(), tf.maximum(room // 2, room - right.row_lengths()))
        after = tf.minimum(right.row_lengths(), room - before)
        left = _tails(self._with_masks(_tails(left, before)), before)
        return left, heads(self._with_masks(heads(right, after)), after), choice

    def _with_masks(self, ids):
        """Returns ids, RaggedTensor [B, (n)], with the [MASK]s of the other blanks."""
        is_blank = ids.values == OTHER_BLANK
        counts = tf.where(is_blank, OTHER_BLANK_TOKENS, 1)
        values = tf.where(is_blank, self._mask_id, ids.values)
        ends = tf.cumsum(tf.concat([[0], counts], axis=0))
        splits = tf.cast(tf.gather(ends, ids.row_splits), tf.int64)
        return tf.RaggedTensor.from_row_splits(tf.repeat(values, counts), splits, validate=False)


def _tails(ragged, lengths):
    """Returns the last entries of each row of a RaggedTensor [B, (n)], at most `lengths`, [B]."""
    return tf.reverse(heads(tf.reverse(ragged, [1]), lengths), [1])


def pack(questions, packing, reader, paths, bad_rows):
    """Returns (the `Examples` of a list of `ChoiceQuestion`, a line on them).

    Args:
      questions: list of `ChoiceQuestion`, all with a question or all with a blank.
      packing: a `QuestionPacking` or `BlankPacking`.
      reader: `TextReader`.
      paths: their files, for messages.
      bad_rows: `BadRows`, which collects questions with a text that has no token.

    Raises:
      UserError: such a question, unless these are skipped; or no question is left.
    """
    texts = [packing.texts(question) for question in questions]
    ids = _ids_of({t for pair in texts for t in pair}, lambda each: packing.ids_of(reader, each))
    choice_ids = _ids_of({choice for q in questions for choice in q.choices}, reader.ids)
    kept, sequences = [], []
    for question, pair in zip(questions, texts, strict=True):
        pair, choices = [ids[text] for text in pair], [choice_ids[c] for c in question.choices]
        missing = packing.missing(*pair) if all(map(len, choices)) else "a choice"
        if missing:
            bad_rows.add(f"{question.place}: {missing} has no tokens; write a text")
            continue
        kept.append(question)
        sequences += [(*pair, choice) for choice in choices]
    if not kept:
        raise UserError(f"{', '.join(paths)}: no question{bad_rows.note()}")
    *packed, num_cut = pack_all(packing, *zip(*sequences, strict=True))
    counts = [len(question.choices) for question in kept]
    least, most = min(counts), max(counts)
    names = ("input_ids", "segment_ids")
    arrays = {n: _by_question(rows, counts) for n, rows in zip(names, packed, strict=True)}
    answers = [question.answer for question in kept]
    if None not in answers:
        arrays["label_ids"] = np.array(answers, np.int32)
    note = f"{', '.join(paths)}: {console.plural(len(kept), 'question')} with " + (
        f"{most} choices" if least == most else f"{least} to {most} choices"
    )
    note += f"; too long, so truncated: {num_cut:,} choices" if num_cut else ""
    return Examples(kept, arrays, answers), note + bad_rows.note()


def _ids_of(texts, function):
    texts = sorted(texts)
    return dict(zip(texts, each_row(function, texts), strict=True))


def _by_question(rows, counts):
    """Returns the rows of each question, filled up with empty ones to the largest count."""
    rows, empty, most = iter(rows), np.zeros(0, np.int32), max(counts)
    return [[*itertools.islice(rows, count), *[empty] * (most - count)] for count in counts]
