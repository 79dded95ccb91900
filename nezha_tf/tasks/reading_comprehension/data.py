"""Questions and passages as windows: [CLS] question [SEP] part of the passage [SEP]."""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Question
from nezha_tf.tasks.finetuning.windows import Window, windows_of
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


def make_passage(text, tokenizer):
    """Returns the `Passage` of a text, tokenized by a `FullTokenizer`.

    Combining marks that lower-casing drops (accents in characters of their own) belong to the token
    before them, so that an answer keeps them.
    """
    tokens = tokenizer.tokenize_with_offsets(text)
    ids = tokenizer.convert_tokens_to_ids([token.text for token in tokens])
    starts = [token.start for token in tokens]
    bounds = [*starts, len(text)][1:]
    ends = [_past_marks(text, p.end, bound) for p, bound in zip(tokens, bounds, strict=True)]
    return Passage(text, *(np.array(values, np.int32) for values in (ids, starts, ends)))


def _past_marks(text, end, bound):
    while end < bound and unicodedata.category(text[end]) == "Mn":
        end += 1
    return end


class Example(NamedTuple):
    """A question with the windows on its passage.

    Attributes:
      question: `Question`.
      passage: `Passage`.
      offset: the place in each window where the passage begins.
      windows: list of the `Window`s on the passage.
      first_window: the index of the first of them among the windows of all questions.
    """

    question: Question
    passage: Passage
    offset: int
    windows: list[Window]
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
        self, questions, tokenizer, max_seq_length, max_query_length, doc_stride, bad_rows=None
    ):
        """Args:
          questions: list of `Question`.
          tokenizer: `FullTokenizer`.
          max_seq_length: most tokens of a window, special ones included.
          max_query_length: most tokens of a question; the ends of longer ones are cut off.
          doc_stride: number of tokens between the starts of two windows.
          bad_rows: see `read_questions`.

        Raises:
          UserError: the lengths leave no room for a passage, the stride skips parts of it, or a
            question, passage or first answer has no tokens.
        """
        _check_lengths(max_seq_length, max_query_length, doc_stride)
        bad_rows, vocabulary = bad_rows or BadRows(), tokenizer.vocabulary
        passage_of = functools.cache(lambda text: make_passage(text, tokenizer))
        names = ("input_ids", "segment_ids", "start_positions", "end_positions")
        self.examples, self.arrays = [], {name: [] for name in names}
        targets, num_truncated = [], 0
        for question in console.progress(questions, desc="cutting windows", unit="question"):
            passage = passage_of(question.context)
            query = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(question.text))
            fault, target = _fault_and_target(question, query, passage)
            if fault:
                bad_rows.add(f"{question.place}: {fault}")
                continue
            num_truncated += len(query) > max_query_length
            query = [vocabulary.cls_id, *query[:max_query_length], vocabulary.sep_id]
            room, offset = max_seq_length - len(query) - 1, len(query)
            windows = windows_of(len(passage.ids), room, doc_stride, is_last_full=False)
            first_window = len(self.arrays["input_ids"])
            self.examples.append(Example(question, passage, offset, windows, first_window))
            targets.append(target)
            for window in windows:
                shown = passage.ids[window.start : window.start + window.length]
                ids = np.array([*query, *shown, vocabulary.sep_id], np.int32)
                segment_ids = (np.arange(len(ids)) >= offset).astype(np.int32)
                row = (ids, segment_ids, *_positions(target, window, offset))
                for name, value in zip(names, row, strict=True):
                    self.arrays[name].append(value)
        if not self.examples:
            raise UserError(f"no question is left; the first fault: {bad_rows.first}")
        for name in names[2:]:
            self.arrays[name] = np.array(self.arrays[name], np.int32)
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
    if not query:
        return "the question has no tokens", None
    if not len(passage.ids):
        return "its passage has no tokens", None
    answer = question.answers[0] if question.answers else None
    if answer is None or answer.start is None:
        return None, None
    target = passage.tokens_of(answer.start, answer.start + len(answer.text))
    return None if target else f"the answer {answer.text!r} has no tokens", target


def _positions(target, window, offset):
    """Returns (start, end) of the answer in a window; (0, 0) if the window lacks part of it."""
    if not target:
        return 0, 0
    first, last = (token - window.start for token in target)
    return (first + offset, last + offset) if 0 <= first <= last < window.length else (0, 0)
