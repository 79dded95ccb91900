"""The search for answers in a graph: the best of all spans of a passage."""

from typing import NamedTuple

import tensorflow as tf

from nezha_tf.serving.text_reader import Tokens, text_of
from nezha_tf.serving.windows import Windows

# What there is of each answer: its type, and the value for no answer.
ANSWER = {
    "answer": (tf.string, ""),
    "start": (tf.int32, -1),
    "end": (tf.int32, -1),
    "start_logit": (tf.float64, 0.0),
    "end_logit": (tf.float64, 0.0),
    "score": (tf.float64, 0.0),
    "probability": (tf.float64, 0.0),
}
# The score of impossible spans, and the logit in place of one that is not a number (after an
# overflow), so that it is no candidate; the loss shows the overflow.
IMPOSSIBLE, NO_NUMBER = tf.float64.min, -1e9


class ReadPassages(NamedTuple):
    """B passages, each beside a question, that a model has read in W windows."""

    tokens: Tokens  # those that the windows show
    windows: Windows
    offset: tf.Tensor  # int64 [B], the place in its windows where each passage begins
    start_logits: tf.Tensor  # float [W, T]
    end_logits: tf.Tensor


class Spans(NamedTuple):
    """The values that the search needs for the N tokens of all passages, concatenated."""

    starts: tf.Tensor  # float64 [N], the logit of each token as a start
    ends: tf.Tensor  # float64 [W * T], the logits of all windows' tokens as ends
    place: tf.Tensor  # int64 [N], the index in `ends` of each token
    left: tf.Tensor  # int64 [N], the number of tokens from each token to the end of its window
    null: tf.Tensor  # float64 [B], the score of no answer in each passage


class AnswerSearch:
    """Finds the answers of questions as BERT's run_squad.py does, but considers every span.

    run_squad.py combines only the most probable starts and ends. The logits of a span come from
    the window in which its first token has the most context. `has_null` says whether a question may
    have no answer.
    """

    def __init__(self, flags):
        """Takes the flags of run_mrc.py, a dict."""
        self._length, self._stride = flags["max_seq_length"], flags["doc_stride"]
        self._n_best_size = flags["n_best_size"]
        self._max_answer_length = flags["max_answer_length"]
        self.has_null = flags["version_2_with_negative"]
        self._threshold = flags["null_score_diff_threshold"]

    def __call__(self, read):
        """Returns the answers in `ReadPassages`, a dict.

        Those of a passage stand by falling score: at most --n_best_size with different texts and,
        if there may be none, no answer; then there are empty ones.

        Returns:
          The keys of `ANSWER`, [B, --n_best_size + 1] each, where the probabilities of a passage
          are a softmax over its scores; `count`, int32 [B], the number of answers; `predicted`,
          int32 [B], the place of the one that is predicted; and `null_score_diff`, float64 [B], the
          score of no answer minus that of the best text.
        """
        spans = self._spans(read)
        shape = [self._n_best_size + 1]
        specs = {name: tf.TensorSpec(shape, dtype) for name, (dtype, _) in ANSWER.items()}
        specs |= {name: tf.TensorSpec([], tf.int32) for name in ("count", "predicted")}
        specs["null_score_diff"] = tf.TensorSpec([], tf.float64)
        return tf.map_fn(
            lambda row: self._ranked(read.tokens, spans, row),
            tf.range(read.tokens.ids.nrows()),
            fn_output_signature=specs,
        )

    def _spans(self, read):
        windows, num_tokens = read.windows, read.tokens.ids.row_lengths()
        starts, ends = (tf.cast(v, tf.float64) for v in (read.start_logits, read.end_logits))
        # No answer has its score from the window that gives it the lowest one.
        null = tf.math.segment_min(starts[:, 0] + ends[:, 0], windows.rows)
        token = tf.ragged.range(num_tokens)
        rows, room = token.value_rowids(), self._length - 1 - read.offset
        window = windows.best(rows, token.values, room, self._stride)
        within = token.values - tf.gather(windows.starts, window)
        place = window * tf.shape(starts, tf.int64)[1] + tf.gather(read.offset, rows) + within
        starts, ends = (tf.reshape(logits, [-1]) for logits in (starts, ends))
        starts, ends = (
            tf.where(tf.math.is_nan(v), tf.constant(NO_NUMBER, v.dtype), v) for v in (starts, ends)
        )
        left = tf.gather(windows.lengths, window) - within
        return Spans(tf.gather(starts, place), ends, place, left, null)

    def _ranked(self, tokens, spans, row):
        """Returns what `__call__` returns, of a single passage."""
        found, null = self._best_texts(tokens, spans, row), spans.null[row]
        scores, predicted = found["score"], 0
        # A passage without tokens has no span.
        null_score_diff = null - tf.concat([scores, [IMPOSSIBLE]], axis=0)[0]
        if self.has_null:
            # Among equal scores no answer is last, and it is always kept.
            rank = tf.reduce_sum(tf.cast(scores >= null, tf.int32))
            others = tf.where(rank < self._n_best_size, max(1, self._n_best_size - 1), rank)
            none = {name: empty for name, (_, empty) in ANSWER.items()} | {"score": null}
            found = {
                name: tf.concat([values[:rank], [none[name]], values[rank:others]], axis=0)
                for name, values in found.items()
            }
            best = tf.cast(rank == 0, tf.int32)  # the place of the best text
            predicted = tf.where(null_score_diff > self._threshold, rank, best)
        found["probability"] = tf.nn.softmax(found["score"])
        most, filled = self._n_best_size + 1, {}
        for name, (dtype, empty) in ANSWER.items():
            rest = tf.fill([most], tf.constant(empty, dtype))
            filled[name] = tf.concat([found[name], rest], axis=0)[:most]
        counts = {"count": tf.size(found["score"]), "predicted": predicted}
        return {**filled, **counts, "null_score_diff": null_score_diff}

    def _best_texts(self, tokens, spans, row):
        """Returns the best answers with different texts, best first, at most --n_best_size.

        Returns:
          Dict of the keys of `ANSWER` but "probability", each [n].
        """
        names = [name for name in ANSWER if name != "probability"]
        splits = tokens.ids.row_splits
        part = slice(splits[row], splits[row + 1])
        starts, place, left = spans.starts[part], spans.place[part], spans.left[part]
        # The scores of the spans of tokens p to p + n, float64 [P, L].
        length = tf.range(tf.minimum(self._max_answer_length, tf.size(starts)), dtype=tf.int64)
        is_inside = length < left[:, None]
        ends = tf.gather(spans.ends, tf.where(is_inside, place[:, None] + length, 0))
        scores = tf.where(is_inside, starts[:, None] + ends, IMPOSSIBLE)
        ends, flat = tf.reshape(ends, [-1]), tf.reshape(scores, [-1])
        width = tf.maximum(tf.size(length, tf.int64), 1)

        def look(count, *_):
            top = tf.math.top_k(flat, tf.minimum(count, tf.size(flat)))
            is_span = top.values > IMPOSSIBLE
            values, place = (tf.boolean_mask(v, is_span) for v in top)
            first, length = tf.cast(place, tf.int64) // width, tf.cast(place, tf.int64) % width
            start = tf.gather(tokens.starts.values, splits[row] + first)
            end = tf.gather(tokens.ends.values, splits[row] + first + length)
            texts = text_of(tokens.characters, tf.fill(tf.shape(first), row), start, end)
            distinct, which = tf.unique(texts)
            chosen = tf.math.unsorted_segment_min(
                tf.range(tf.size(which)), which, tf.size(distinct)
            )[: self._n_best_size]
            # If spans have the same text, more spans are needed to get enough texts.
            is_done = (tf.size(distinct) >= self._n_best_size) | (tf.size(place) < count)
            logits = tf.gather(starts, first), tf.gather(ends, place)
            found = dict(zip(names, (texts, start, end, *logits, values), strict=True))
            return count * 4, is_done, {n: tf.gather(v, chosen) for n, v in found.items()}

        none = {name: tf.zeros([0], ANSWER[name][0]) for name in names}
        shapes = {name: tf.TensorShape([None]) for name in names}
        return tf.while_loop(
            lambda _, is_done, __: ~is_done,
            look,
            (self._n_best_size, False, none),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), shapes),
        )[2]


def _numbers(logits):
    return tf.where(tf.math.is_nan(logits), tf.constant(NO_NUMBER, logits.dtype), logits)
