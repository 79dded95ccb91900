"""Questions and passages as windows: [CLS] question [SEP] part of the passage [SEP]."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Question
from nezha_tf.serving.windows import windows_on
from nezha_tf.text.graph_tokenizer import TOKENIZED_AT_ONCE, each_row
from nezha_tf.text.packing import pack_all, rows_of, text_packing
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

# [CLS], and [SEP] after the question and after the passage.
SPECIAL_TOKENS = 3


class Passage(NamedTuple):
    """A tokenized text of P tokens.

    Attributes:
      text: the raw text.
      ids: int32 [P].
      starts, ends: int32 [P], both rising: token p covers the characters text[starts[p]:ends[p]].
    """

    text: str
    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def characters_of(self, first, last):
        """Returns (start, end): the tokens `first` to `last` cover text[start:end]."""
        return int(self.starts[first]), int(self.ends[last])

    def tokens_of(self, start, end):
        """Returns (first, last) of the tokens that overlap text[start:end], or None."""
        inside = np.flatnonzero((self.ends > start) & (self.starts < end))
        return (int(inside[0]), int(inside[-1])) if len(inside) else None


def passages_of(texts, reader):
    """Yields the `Passage` of each of a list of texts, tokenized by a `TextReader`."""
    for first in range(0, len(texts), TOKENIZED_AT_ONCE):
        part = texts[first : first + TOKENIZED_AT_ONCE]
        tokens = with_marks(reader.tokens(tf.constant(part)))
        columns = (rows_of(values) for values in (tokens.ids, tokens.starts, tokens.ends))
        yield from map(Passage, part, *columns)


def with_marks(tokens):
    """Returns `Tokens` extended by the combining marks after them, so that an answer keeps these.

    They are accents in characters of their own, which lower-casing drops.
    """
    characters, ends = tokens.characters, tokens.ends
    other = tf.where(~tf.strings.regex_full_match(characters.values, r"\p{Mn}"))[:, 0]
    other = tf.concat([other, [tf.size(characters.values, tf.int64)]], axis=0)
    rows = ends.value_rowids()
    base = tf.gather(characters.row_starts(), rows)
    end = tf.cast(ends.values, tf.int64)
    past = tf.gather(other, tf.searchsorted(other, base + end)) - base
    # A token must not extend into the next token or beyond the text.
    following = tf.concat([tokens.starts.values[1:], [0]], axis=0)
    is_last = tf.concat([rows[1:] != rows[:-1], [True]], axis=0)[: tf.size(rows)]
    length = tf.gather(characters.row_lengths(), rows)
    bound = tf.where(is_last, length, tf.cast(following[: tf.size(rows)], tf.int64))
    end = tf.maximum(end, tf.minimum(past, bound))
    return tokens._replace(ends=ends.with_values(tf.cast(end, tf.int32)))


class Example(NamedTuple):
    """A question with the windows on its passage.

    Attributes:
      question: `Question`.
      passage: `Passage`.
      offset: the place in each window where the passage begins.
      windows: int64 [W, 2], the first token and the number of tokens of each window.
      first_window: the index of the first of them among the windows of all questions.
    """

    question: Question
    passage: Passage
    offset: int
    windows: np.ndarray
    first_window: int


class WindowedQuestions:
    """Questions as a model's examples, with the windows of BERT's run_squad.py.

    Attributes:
      examples: list of `Example`, in the questions' order.
      arrays: the arrays for `ArrayReader`, with one example per window. `start_positions` and
        `end_positions` are 0 ([CLS]) where a window does not show the whole answer.
      counts: dict of what is not learnt as the files have it to its number.
    """

    def __init__(
        self, questions, reader, max_seq_length, max_query_length, doc_stride, bad_rows=None
    ):
        """Args:
          questions: list of `Question`.
          reader: `TextReader`.
          max_seq_length: most tokens of a window, special ones included.
          max_query_length: most tokens of a question; the ends of longer ones are cut off.
          doc_stride: number of tokens between the starts of two windows.
          bad_rows: see `read_questions`.

        Raises:
          UserError: the lengths leave no room for a passage, the stride skips parts of it, or a
            question, passage or first answer has no tokens.
        """
        _check_lengths(max_seq_length, max_query_length, doc_stride)
        bad_rows, contexts = (
            bad_rows or BadRows(),
            list(dict.fromkeys(q.context for q in questions)),
        )
        passages = dict(zip(contexts, passages_of(contexts, reader), strict=True))
        queries = each_row(reader.ids, [question.text for question in questions])
        kept, num_truncated = [], 0
        for question, query in zip(questions, queries, strict=True):
            passage = passages[question.context]
            fault, target = _fault_and_target(question, query, passage)
            if fault:
                bad_rows.add(f"{question.place}: {fault}")
                continue
            num_truncated += len(query) > max_query_length
            kept.append((question, query[:max_query_length], passage, target))
        if not kept:
            raise UserError(f"no question is left; the first fault: {bad_rows.first}")
        offsets = np.array([len(query) + 2 for _, query, _, _ in kept])  # [CLS] question [SEP]
        num_tokens = np.array([len(passage.ids) for _, _, passage, _ in kept])
        windows = windows_on(
            num_tokens, max_seq_length - 1 - offsets, doc_stride, is_last_full=False
        )
        in_questions = np.split(
            np.stack([windows.starts, windows.lengths], axis=1), np.cumsum(windows.counts)[:-1]
        )
        self.examples, positions, asked, shown = [], [], [], []
        for (question, query, passage, target), offset, of_question in zip(
            kept, offsets.tolist(), in_questions, strict=True
        ):
            self.examples.append(Example(question, passage, offset, of_question, len(shown)))
            for start, length in of_question.tolist():
                asked.append(query)
                shown.append(passage.ids[start : start + length])
                positions.append(_positions(target, start, length, offset))
        packing = text_packing(reader.vocabulary, max_seq_length, is_pair=True)
        ids, segment_ids, _ = pack_all(packing, asked, shown)
        starts, ends = np.array(positions, np.int32).T
        names = ("input_ids", "segment_ids", "start_positions", "end_positions")
        self.arrays = dict(zip(names, (ids, segment_ids, starts, ends), strict=True))
        targets = [target for *_, target in kept]
        self.counts = {"questions truncated": num_truncated, **self._count_answers(targets)}

    def description(self):
        passages = len({id(example.passage) for example in self.examples})
        windows = len(self.arrays["input_ids"])
        contents = (
            f"{console.plural(len(self.examples), 'question')} on "
            f"{console.plural(passages, 'passage')}, {console.plural(windows, 'window')}"
        )
        return contents + "".join(f"; {what}: {n:,}" for what, n in self.counts.items() if n)

    def _count_answers(self, targets):
        widened = hidden = 0
        for example, target in zip(self.examples, targets, strict=True):
            if target:
                answer = example.question.answers[0]
                start, end = example.passage.characters_of(*target)
                widened += start < answer.start or end > answer.start + len(answer.text)
                first = example.first_window
                hidden += not self.arrays["end_positions"][
                    first : first + len(example.windows)
                ].any()
        answers = [answer for example in self.examples for answer in example.question.answers]
        searched = sum(answer.is_searched and answer.start is not None for answer in answers)
        return {
            "answers widened to whole tokens": widened,
            "answers that no window shows whole": hidden,
            "answers that are not in their passages": sum(a.start is None for a in answers),
            "answers moved to their places in the passages": sum(a.is_moved for a in answers),
            "answers without a place, taken at the first in their passages": searched,
        }


def _check_lengths(max_seq_length, max_query_length, doc_stride):
    room = max_seq_length - max_query_length - SPECIAL_TOKENS
    if room < 1:
        raise UserError(
            f"--max_seq_length={max_seq_length} leaves no room for a passage beside "
            f"--max_query_length={max_query_length} and {SPECIAL_TOKENS} special tokens; it "
            f"must be at least {max_query_length + SPECIAL_TOKENS + 1}"
        )
    if doc_stride > room:
        raise UserError(
            f"--doc_stride={doc_stride} skips text: beside a question of "
            f"--max_query_length={max_query_length} a window of --max_seq_length="
            f"{max_seq_length} shows {room} tokens of the passage; pass at most {room}"
        )


def _fault_and_target(question, query, passage):
    """Returns (fault or None, (first, last) of the first answer's tokens or None)."""
    if not len(query):
        return "the question has no tokens", None
    if not len(passage.ids):
        return "its passage has no tokens", None
    answer = question.answers[0] if question.answers else None
    if answer is None or answer.start is None:
        return None, None
    target = passage.tokens_of(answer.start, answer.start + len(answer.text))
    return None if target else f"the answer {answer.text!r} has no tokens", target


def _positions(target, start, length, offset):
    """Returns (start, end) of the answer in a window; (0, 0) if the window lacks part of it."""
    if not target:
        return 0, 0
    first, last = (token - start for token in target)
    return (first + offset, last + offset) if 0 <= first <= last < length else (0, 0)
