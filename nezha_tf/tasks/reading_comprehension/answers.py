"""Finds a question's answers, with exact characters and probabilities, and writes them."""

import itertools
import json
import os
from typing import NamedTuple

import numpy as np

from nezha_tf.tasks.finetuning.windows import best_windows
from nezha_tf.util import files


class Candidate(NamedTuple):
    """An answer: text[start:end] of the raw passage; no answer is "" with start and end None."""

    text: str
    start: int | None
    end: int | None
    start_logit: float
    end_logit: float
    probability: float | None = None

    @property
    def score(self):
        return self.start_logit + self.end_logit


class Prediction(NamedTuple):
    """The prediction for a question.

    Attributes:
      best: the chosen one of the candidates.
      candidates: list of `Candidate`s with different texts, by falling score; their
        probabilities, a softmax over their scores, sum to 1.
      null_score_diff: the score of no answer minus that of the best text; None if every question
        has an answer.
    """

    best: Candidate
    candidates: list[Candidate]
    null_score_diff: float | None


class AnswerSearch:
    """Finds the answers of questions as BERT's run_squad.py does, but considers every span.

    run_squad.py combines only the most probable starts and ends. The logits of a span come from
    the window in which its first token has the most context.
    """

    def __init__(self, n_best_size, max_answer_length, null_score_diff_threshold=None):
        """Takes the flags of run_mrc.py; without a threshold every question has an answer."""
        self._n_best_size = n_best_size
        self._max_answer_length = max_answer_length
        self._threshold = null_score_diff_threshold

    def __call__(self, example, start_logits, end_logits):
        """Returns the `Prediction` for a question.

        Args:
          example: `Example`.
          start_logits, end_logits: lists of float arrays [T], one for each of the example's
            windows, or for the first of them.
        """
        starts, ends = span_logits(example, start_logits, end_logits, self._max_answer_length)
        candidates = self._best_texts(example.passage, starts, ends)
        best, null_score_diff = candidates[0], None
        if self._threshold is not None:
            # No answer has its score from the window that gives it the lowest one.
            pairs = zip(start_logits, end_logits, strict=True)
            logits = min(((float(s[0]), float(e[0])) for s, e in pairs), key=sum)
            null = Candidate("", None, None, *logits)
            null_score_diff = null.score - best.score
            ranked = sorted([*candidates, null], key=lambda c: -c.score)[: self._n_best_size]
            candidates = [*ranked, *(c for c in (best, null) if c not in ranked)]
            best = null if null_score_diff > self._threshold else best
        candidates = _with_probabilities(candidates)
        best = next(candidate for candidate in candidates if candidate.text == best.text)
        return Prediction(best, candidates, null_score_diff)

    def _best_texts(self, passage, starts, ends):
        """Returns the best candidates with different texts, best first."""
        scores, candidates = starts[:, None] + ends, {}
        for place in np.argsort(-scores, axis=None, kind="stable"):
            first, more = divmod(int(place), scores.shape[1])
            if len(candidates) == self._n_best_size or scores[first, more] == -np.inf:
                break
            start, end = passage.characters_of(first, first + more)
            text = passage.text[start:end]
            logits = float(starts[first]), float(ends[first, more])
            candidates.setdefault(text, Candidate(text, start, end, *logits))
        return list(candidates.values())


def span_logits(example, start_logits, end_logits, max_answer_length):
    """Returns the logits of all spans of a passage.

    Args:
      example, start_logits, end_logits: see `AnswerSearch.__call__`.
      max_answer_length: L, most tokens of a span.

    Returns:
      (starts [P], ends [P, L]), float64: the span of tokens p to p + n has the logits starts[p]
      and ends[p, n]; ends is -inf if the span goes beyond its window. P is the number of tokens
      in windows with logits.
    """
    windows = example.windows[: len(start_logits)]
    num_tokens = sum(windows[-1])
    window_starts, window_lengths = np.array(windows).T
    best = best_windows(windows, num_tokens)
    # The place of each token of the passage in the concatenated logits of all windows.
    base = np.cumsum([0, *map(len, start_logits[:-1])])
    token = np.arange(num_tokens)
    place = (base + example.offset - window_starts)[best] + token
    length = np.arange(min(max_answer_length, num_tokens))
    window_ends = (window_starts + window_lengths)[best]
    is_inside = (token + 1)[:, None] + length <= window_ends[:, None]
    # A nan (from an overflow) must not become a candidate; the loss shows the overflow.
    all_starts, all_ends = (
        np.nan_to_num(np.concatenate(logits).astype(np.float64), nan=-1e9)
        for logits in (start_logits, end_logits)
    )
    ends = all_ends[np.where(is_inside, place[:, None] + length, 0)]
    return all_starts[place], np.where(is_inside, ends, -np.inf)


def _with_probabilities(candidates):
    scores = np.array([candidate.score for candidate in candidates])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return [c._replace(probability=float(p)) for c, p in zip(candidates, shares, strict=True)]


COLUMNS = ("id", "rank", "text", "start", "end", "probability", "start_logit", "end_logit")


def write_answers(folder, prefix, form, ids, predictions):
    """Writes `predictions.json` in SQuAD's format, {id: text}, and `nbest_predictions.jsonl`.

    Args:
      folder: the folder to write to.
      prefix: prefix of the file names.
      form: "jsonl", one question per line, or "tsv", one candidate per line. In "tsv", white
        space inside a text (tabs, line ends) becomes single spaces.
      ids: list of the questions' ids.
      predictions: list of `Prediction`, one for each id.

    Returns:
      The path of the first file.
    """
    path = os.path.join(folder, f"{prefix}predictions.json")
    texts = {name: p.best.text for name, p in zip(ids, predictions, strict=True)}
    files.write_text(path, json.dumps(texts, ensure_ascii=False, indent=2) + "\n")
    if form == "jsonl":
        lines = [_json_line(*pair) for pair in zip(ids, predictions, strict=True)]
    else:
        lines = ["\t".join(COLUMNS), *itertools.chain(*map(_table_lines, ids, predictions))]
    text = "".join(f"{line}\n" for line in lines)
    files.write_text(os.path.join(folder, f"{prefix}nbest_predictions.{form}"), text)
    return path


def _json_line(name, prediction):
    best = prediction.best
    line = {"id": name, "prediction": best.text, "start": best.start, "end": best.end}
    line["probability"] = best.probability
    if prediction.null_score_diff is not None:
        line["null_score_diff"] = prediction.null_score_diff
    line["nbest"] = [candidate._asdict() for candidate in prediction.candidates]
    return json.dumps(line, ensure_ascii=False)


def _table_lines(name, prediction):
    for rank, candidate in enumerate(prediction.candidates, start=1):
        values = {"id": name, "rank": rank, **candidate._asdict()}
        values["text"] = " ".join(candidate.text.split())
        yield "\t".join("" if values[c] is None else str(values[c]) for c in COLUMNS)
