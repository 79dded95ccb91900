"""Questions and passages as windows: [CLS] question [SEP] part of the passage [SEP]."""

import dataclasses
import itertools
import unicodedata
from typing import NamedTuple

import numpy as np

from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import Question
from nezha_tf.util import console
from nezha_tf.util.errors import UserError


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
    """Tokenizes a text.

    Combining marks that lower-casing drops (accents in characters of their own) belong to the token
    before them, so that an answer keeps them.

    Args:
      text: str.
      tokenizer: `FullTokenizer`.

    Returns:
      `Passage`.
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


# [CLS], and [SEP] after the question and after the passage.
SPECIAL_TOKENS = 3

COUNTS = (
    "questions truncated",
    "answers widened to whole tokens",
    "answers that no window shows whole",
    "answers that are not in their passages",
    "answers moved to their places in the passages",
    "answers without a place, taken at the first in their passages",
)


class Stretch(NamedTuple):
    """The tokens `first` to `first + count - 1` of a passage, the part in one window."""

    first: int
    count: int


class Example(NamedTuple):
    """A question with the windows on its passage.

    Attributes:
      question: `Question`.
      passage: `Passage`.
      offset: the place in each window where the passage begins.
      stretches: list of the `Stretch` of each window.
      first_window: the index of the question's first window among all windows.
    """

    question: Question
    passage: Passage
    offset: int
    stretches: list[Stretch]
    first_window: int


@dataclasses.dataclass(frozen=True)
class WindowedQuestions:
    """The windows of questions.

    Attributes:
      examples: list of `Example`, in the questions' order.
      arrays: the arrays of all windows for `ArrayReader`: `input_ids`, `segment_ids`,
        `start_positions`, `end_positions`.
      counts: dict of each of `COUNTS` to a number.
    """

    examples: list[Example]
    arrays: dict
    counts: dict[str, int]

    def description(self):
        """Returns a short text on the contents."""
        passages = len({id(example.passage) for example in self.examples})
        windows = len(self.arrays["input_ids"])
        found = (
            f"{console.plural(len(self.examples), 'question')} on "
            f"{console.plural(passages, 'passage')}, {console.plural(windows, 'window')}"
        )
        return found + "".join(f"; {what}: {n:,}" for what, n in self.counts.items() if n)


class Windowing:
    """Makes windows of passages, as `convert_examples_to_features` of BERT's run_squad.py does."""

    def __init__(self, tokenizer, max_seq_length, max_query_length, doc_stride):
        """Args:
          tokenizer: `FullTokenizer`.
          max_seq_length: most tokens of a window, special ones included.
          max_query_length: most tokens of a question; the ends of longer ones are cut off.
          doc_stride: number of tokens between the starts of two windows.

        Raises:
          UserError: the lengths leave no room for a passage, or the stride skips parts of it.
        """
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
        self._tokenizer = tokenizer
        self._max_seq_length = max_seq_length
        self._max_query_length = max_query_length
        self._doc_stride = doc_stride

    def __call__(self, questions, bad_rows=None):
        """Returns the `WindowedQuestions` of questions.

        Args:
          questions: list of `Question`.
          bad_rows: see `read_questions`.

        Raises:
          UserError: a question, passage or first answer has no tokens.
        """
        examples, arrays = [], {name: [] for name in ("input_ids", "segment_ids")}
        positions, passages, bad_rows = [], {}, bad_rows or BadRows()
        counts = dict.fromkeys(COUNTS, 0)
        for question in console.progress(questions, desc="cutting windows", unit="question"):
            if question.context not in passages:
                passages[question.context] = make_passage(question.context, self._tokenizer)
            passage = passages[question.context]
            query = self._tokenizer.convert_tokens_to_ids(self._tokenizer.tokenize(question.text))
            fault, target = _fault_and_target(question, query, passage)
            if fault:
                bad_rows.add(f"{question.place}: {fault}")
                continue
            counts["questions truncated"] += len(query) > self._max_query_length
            query = query[: self._max_query_length]
            room = self._max_seq_length - len(query) - SPECIAL_TOKENS
            offset = len(query) + 2
            stretches = list(stretches_of(len(passage.ids), room, self._doc_stride))
            examples.append(Example(question, passage, offset, stretches, len(positions)))
            for stretch in stretches:
                ids = self._packed(query, passage, stretch)
                arrays["input_ids"].append(ids)
                arrays["segment_ids"].append((np.arange(len(ids)) >= offset).astype(np.int32))
            places = [_positions(target, stretch, offset) for stretch in stretches]
            _count_answers(question, passage, target, places, counts)
            positions += places
        if not examples:
            raise UserError(f"no question is left; the first fault: {bad_rows.first}")
        starts, ends = np.array(positions, np.int32).T
        return WindowedQuestions(
            examples, {**arrays, "start_positions": starts, "end_positions": ends}, counts
        )

    def _packed(self, query, passage, stretch):
        vocabulary = self._tokenizer.vocabulary
        shown = passage.ids[stretch.first : stretch.first + stretch.count]
        separator = [vocabulary.sep_id]
        return np.array([vocabulary.cls_id, *query, *separator, *shown, *separator], np.int32)


def stretches_of(num_tokens, room, doc_stride):
    """Yields the `Stretch` of each window on a passage.

    Args:
      num_tokens: P, the number of tokens in the passage.
      room: most tokens of the passage in a window.
      doc_stride: number of tokens between the starts of two windows, at most `room`.
    """
    for first in itertools.count(0, doc_stride):
        yield Stretch(first, min(room, num_tokens - first))
        if first + room >= num_tokens:
            return


def best_windows(stretches, num_tokens):
    """Returns for each token of a passage the window in which it has the most context, int [P].

    The context is the smaller distance to the two ends of the window's stretch plus a hundredth of
    the stretch's length; of ties the first window (`_check_is_max_context` of run_squad.py).
    """
    first, count = np.array(stretches).T[:, :, None]
    token = np.arange(num_tokens)
    left, right = token - first, first + count - 1 - token
    context = np.minimum(left, right) + 0.01 * count
    return np.argmax(np.where((left >= 0) & (right >= 0), context, -np.inf), axis=0)


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


def _count_answers(question, passage, target, places, counts):
    if target:
        answer = question.answers[0]
        start, end = passage.characters_of(*target)
        is_wider = start < answer.start or end > answer.start + len(answer.text)
        counts["answers widened to whole tokens"] += is_wider
        counts["answers that no window shows whole"] += not any(map(any, places))
    nowhere = sum(answer.start is None for answer in question.answers)
    counts["answers that are not in their passages"] += nowhere
    moved = sum(answer.is_moved for answer in question.answers)
    counts["answers moved to their places in the passages"] += moved
    searched = sum(answer.is_searched and answer.start is not None for answer in question.answers)
    counts["answers without a place, taken at the first in their passages"] += searched


def _positions(target, stretch, offset):
    """Returns (start, end) of the answer in a window; (0, 0) if the window lacks part of it."""
    if not target:
        return 0, 0
    first, last = target
    if first < stretch.first or last >= stretch.first + stretch.count:
        return 0, 0
    return first - stretch.first + offset, last - stretch.first + offset
