"""Finds a question's answers, with exact characters and probabilities, and writes them."""

import itertools
import json
import os
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nezha_tf.serving.text_reader import Tokens
from nezha_tf.serving.windows import Windows
from nezha_tf.tasks.reading_comprehension.search import ReadPassages
from nezha_tf.text.packing import ragged_of
from nezha_tf.util import files

# Questions whose answers are searched at a time.
SEARCHED_AT_ONCE = 32


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


def answers_to(search, examples, start_logits, end_logits):
    """Yields the `Prediction` for each question.

    Args:
      search: `AnswerSearch`.
      examples: list of `data.Example`, the questions in order.
      start_logits, end_logits: lists of float arrays [T], one for each window of all questions, or
        for the first windows: then the last question may have only some of its windows.
    """
    step = tf.function(search, autograph=False, reduce_retracing=True)
    for first in range(0, len(examples), SEARCHED_AT_ONCE):
        some = examples[first : first + SEARCHED_AT_ONCE]
        part = slice(some[0].first_window, some[-1].first_window + len(some[-1].windows))
        logits = start_logits[part], end_logits[part]
        with tf.device("/cpu:0"):
            found = step(read_passages(some, *logits))
        found = {name: values.numpy() for name, values in found.items()}
        for row, example in enumerate(some):
            own = slice(example.first_window - part.start, None)
            ends = zip(*(values[own][: len(example.windows)] for values in logits), strict=True)
            # The score of no answer is that of the window that gives it the lowest one.
            null = min(((float(s[0]), float(e[0])) for s, e in ends), key=sum)
            values = {name: array[row] for name, array in found.items()}
            yield _prediction(example, values, null if search.has_null else None)


def read_passages(examples, start_logits, end_logits):
    """Returns the `ReadPassages` of examples, with the logits of their windows or of the first."""
    windows = np.concatenate([example.windows for example in examples])[: len(start_logits)]
    rows = np.repeat(range(len(examples)), [len(example.windows) for example in examples])
    rows = rows[: len(windows)]
    starts, lengths = windows.T
    ends = np.zeros(len(examples), int)
    np.maximum.at(ends, rows, starts + lengths)
    places = [
        ragged_of([getattr(e.passage, name)[:end] for e, end in zip(examples, ends, strict=True)])
        for name in ("ids", "starts", "ends")
    ]
    texts = tf.constant([example.passage.text for example in examples])
    tokens = Tokens(tf.strings.unicode_split(texts, "UTF-8"), *places)
    given = (rows, starts, lengths, np.bincount(rows, minlength=len(examples)))
    offsets = tf.constant([example.offset for example in examples], tf.int64)
    logits = (ragged_of(values).to_tensor() for values in (start_logits, end_logits))
    return ReadPassages(
        tokens, Windows(*(tf.constant(v, tf.int64) for v in given)), offsets, *logits
    )


def _prediction(example, found, null):
    """Returns the `Prediction` of what the search found in a passage: dict of arrays [K]."""
    candidates = []
    for place in range(found["count"]):
        start, end = int(found["start"][place]), int(found["end"][place])
        logits = float(found["start_logit"][place]), float(found["end_logit"][place])
        if start < 0:
            start, end, logits = None, None, null
        text = "" if start is None else example.passage.text[start:end]
        probability = float(found["probability"][place])
        candidates.append(Candidate(text, start, end, *logits, probability))
    difference = float(found["null_score_diff"]) if null else None
    return Prediction(candidates[found["predicted"]], candidates, difference)


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
