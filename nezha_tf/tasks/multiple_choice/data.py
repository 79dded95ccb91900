"""The questions of files as a model's examples."""

import numpy as np

from nezha_tf.data.choices import BLANK
from nezha_tf.tasks.finetuning.data_sets import Examples
from nezha_tf.tasks.multiple_choice.packing import OTHER_BLANK, BlankPacking, QuestionPacking
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


class Packer:
    """Packs questions, all with a question or all with a blank."""

    def __init__(self, graph_tokenizer, vocabulary, max_seq_length, has_blanks):
        """Args:
          graph_tokenizer: `GraphTokenizer`.
          vocabulary: `Vocabulary`.
          max_seq_length: most tokens of a sequence.
          has_blanks: whether contexts have blanks instead of questions.

        Raises:
          UserError: `max_seq_length` is too small.
        """
        self._tokenizer = graph_tokenizer
        self._has_blanks = has_blanks
        packing = BlankPacking if has_blanks else QuestionPacking
        self._packing = packing(vocabulary, max_seq_length)

    def __call__(self, questions, paths, bad_rows):
        """Returns (the `Examples` of a list of `Question`, a line on them).

        Args:
          questions: list of `Question`.
          paths: their files, for messages.
          bad_rows: `BadRows`, which collects questions with a text that has no token.

        Raises:
          UserError: such a question, unless these are skipped; or no question is left.
        """
        questions, sequences = self._packed(questions, bad_rows)
        named = ", ".join(paths)
        if not questions:
            raise UserError(f"{named}: no question{bad_rows.note()}")
        most = max(map(len, sequences))
        empty = np.zeros(0, np.int32)
        filled = [[*rows, *[(empty, empty)] * (most - len(rows))] for rows in sequences]
        names = ("input_ids", "segment_ids")
        arrays = {n: [[row[i] for row in rows] for rows in filled] for i, n in enumerate(names)}
        answers = [question.answer for question in questions]
        if None not in answers:
            arrays["label_ids"] = np.array(answers, np.int32)
        return Examples(questions, arrays, answers), self._note(named, sequences) + bad_rows.note()

    def _packed(self, questions, bad_rows):
        """Returns (the usable questions, for each the list of its packed sequences)."""
        texts = {text for question in questions for text in self._texts(question)}
        texts = sorted(texts)
        ids = dict(zip(texts, self._tokenizer.ids_of(texts), strict=True)) if texts else {}
        kept, packed = [], []
        for question in questions:
            empty = self._empty(question, ids)
            if empty:
                bad_rows.add(f"{question.place}: {empty} has no tokens; write a text")
                continue
            context = self._context(question, ids)
            kept.append(question)
            packed.append([self._packing(*context, ids[choice]) for choice in question.choices])
        return kept, packed

    def _texts(self, question):
        """Yields the texts of a question that are tokenized."""
        if self._has_blanks:
            yield from BLANK.split(question.context)
        else:
            yield from (question.context, question.text)
        yield from question.choices

    def _empty(self, question, ids):
        """Returns which text has no token, or None; what is around a blank may be empty."""
        if any(not len(ids[choice]) for choice in question.choices):
            return "a choice"
        if self._has_blanks:
            return None
        named = {"the text": question.context, "the question": question.text}
        return next((name for name, text in named.items() if not len(ids[text])), None)

    def _context(self, question, ids):
        """Returns the ids that the packing takes before those of the choice: two lists."""
        if not self._has_blanks:
            return ids[question.context], ids[question.text]
        return around_blank(question.context, question.blank, ids.__getitem__)

    def _note(self, named, sequences):
        count, cut = len(sequences), self._packing.num_truncated
        numbers = sorted({len(rows) for rows in sequences})
        told = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        line = f"{named}: {console.plural(count, 'question')} with {told} choices"
        self._packing.num_truncated = 0
        return line + (f"; too long, so truncated: {cut:,} choices" if cut else "")


def around_blank(context, mark, ids_of):
    """Returns the ids before and after the first blank with a mark: two lists of int.

    Args:
      context: a text with this blank.
      mark: as of `Question.blank`; other blanks become `OTHER_BLANK`.
      ids_of: function of a text that returns its ids.
    """
    marks, texts = BLANK.findall(context), BLANK.split(context)
    at = marks.index(mark)
    return _joined(texts[: at + 1], ids_of), _joined(texts[at + 1 :], ids_of)


def _joined(texts, ids_of):
    """Returns the ids of texts with another blank between each two, a list of int."""
    joined = list(ids_of(texts[0]))
    for text in texts[1:]:
        joined += [OTHER_BLANK, *ids_of(text)]
    return joined
