"""Exports of models that answer questions, with each answer's characters in the raw passage."""

import copy
from typing import NamedTuple

import tensorflow as tf

from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, heads, of_ids, text_of, text_spec
from nezha_tf.serving.windows import in_chunks, windows_on
from nezha_tf.tasks.reading_comprehension.data import SPECIAL_TOKENS

MEANINGS = {
    **INPUT_MEANINGS,
    "question": "the questions",
    "passage": "the text with the answer of each question",
    "answer": "the best answer, characters of the passage; empty if there is none",
    "start": "its first character (code point, from 0); -1 if there is no answer",
    "end": "the first character after it; -1 if there is no answer",
    "score": "the sum of the logits of its start and end",
    "probability": "its share among the best answers of different texts",
    "null_score_diff": "the score of no answer minus that of the best answer",
    "start_logits": "the logit of each token as an answer's first",
    "end_logits": "the logit of each token as an answer's last",
}
# What there is of each answer: its type, and the value for no answer.
ANSWER = {
    "answer": (tf.string, ""),
    "start": (tf.int32, -1),
    "end": (tf.int32, -1),
    "score": (tf.float64, 0.0),
    "probability": (tf.float64, 0.0),
}
LOGITS = {"start_logits": tf.float32, "end_logits": tf.float32}
# The score of impossible spans.
IMPOSSIBLE = tf.float64.min


class Spans(NamedTuple):
    """The values that the search needs for the N tokens of all passages, concatenated."""

    starts: tf.Tensor  # float64 [N], the logit of each token as a start
    ends: tf.Tensor  # float64 [M], the logits of all windows' tokens as ends
    place: tf.Tensor  # int64 [N], the index in `ends` of each token
    left: tf.Tensor  # int64 [N], the number of tokens from each token to the end of its window
    null: tf.Tensor  # float64 [B], the score of no answer in each passage


class ReadingComprehensionServing(Serving):
    """Answers questions about passages."""

    meanings = MEANINGS
    example = 'question=tf.constant(["谁去了长安？"]), passage=tf.constant(["李白去了长安。"])'

    def __init__(self, folder, model):
        """Takes the `ModelFolder` of a run, and the model that `folder.make_model` returned."""
        super().__init__(model, folder.tokenizer)
        task = folder.task
        self._length = task["max_seq_length"]
        self._max_query_length = task["max_query_length"]
        self._stride = task["doc_stride"]
        self._max_answer_length = task["max_answer_length"]
        self._n_best_size = task["n_best_size"]
        has_impossible = task["version_2_with_negative"]
        self._threshold = task["null_score_diff_threshold"] if has_impossible else None
        self._gives_all = False

    def for_page(self):
        """Returns one with the further outputs `answers`, `starts`, `ends` and `probabilities`.

        Each is [B, K]: those of `answer`, then those of the others by falling score, whose
        probability is above 0.
        """
        other = copy.copy(self)
        other._gives_all = True
        return other

    @property
    def about(self):
        return (
            "Answers questions with the characters of a passage. Questions are cut to "
            f"{self._max_query_length} tokens. If a question and its passage do not fit into "
            f"{self._length} tokens, the passage is read in overlapping windows."
        )

    def signatures(self):
        def of_texts(question, passage):
            query = heads(self._reader.ids(question), self._max_query_length)
            tokens = with_marks(self._reader.tokens(passage))
            return self._answers(tokens, self._read(query, tokens))

        specs = [text_spec("question"), text_spec("passage")]
        return as_graphs({"serving_default": (of_texts, specs), "from_ids": of_ids(self._logits)})

    def _logits(self, inputs):
        outputs = self._model(inputs, all_outputs=True)
        return {name: outputs[name] for name in LOGITS}

    def _read(self, query, tokens):
        """Returns the `Spans` of passages (`Tokens`) for questions, ids RaggedTensor [B, (n)]."""
        room = self._length - SPECIAL_TOKENS - query.row_lengths()
        windows = windows_on(tokens.ids.row_lengths(), room, self._stride, is_last_full=False)
        query = tf.gather(query, windows.rows)
        inputs = self._reader.packed(query, windows.show(tokens.ids))
        logits = in_chunks(self._logits, inputs, LOGITS)
        starts, ends = (tf.cast(logits[name], tf.float64) for name in LOGITS)
        null = tf.math.segment_min(starts[:, 0] + ends[:, 0], windows.rows)

        token = tf.ragged.range(tokens.ids.row_lengths())
        window = windows.best(token.value_rowids(), token.values, room, self._stride)
        within = token.values - tf.gather(windows.starts, window)
        offset = tf.gather(query.row_lengths(), window) + 2
        place = window * tf.shape(starts, tf.int64)[1] + offset + within
        starts, ends = (_without_nan(tf.reshape(logits, [-1])) for logits in (starts, ends))
        left = tf.gather(windows.lengths, window) - within
        return Spans(tf.gather(starts, place), ends, place, left, null)

    def _answers(self, tokens, spans):
        """Returns the signature's outputs."""
        specs = {
            name: tf.TensorSpec([self._n_best_size + 1], dtype)
            for name, (dtype, _) in ANSWER.items()
        }
        specs["null_score_diff"] = tf.TensorSpec([], tf.float64)
        ranked = tf.map_fn(
            lambda row: self._ranked(tokens, spans, row),
            tf.range(tokens.ids.nrows()),
            fn_output_signature=specs,
        )
        for name in ("score", "probability", "null_score_diff"):
            ranked[name] = tf.cast(ranked[name], tf.float32)
        outputs = {name: ranked[name][:, 0] for name in ANSWER}
        if self._threshold is not None:
            outputs["null_score_diff"] = ranked["null_score_diff"]
        if self._gives_all:
            outputs |= {
                "answers": ranked["answer"],
                "starts": ranked["start"],
                "ends": ranked["end"],
                "probabilities": ranked["probability"],
            }
        return outputs

    def _ranked(self, tokens, spans, row):
        """Returns the answers of a passage, the same as `answers.AnswerSearch` finds.

        Returns:
          Dict of the keys of `ANSWER`, each [--n_best_size + 1]: the predicted answer, then the
          others by falling score, then no answers; and of `null_score_diff`, float64 [].
        """
        found, null = self._best_texts(tokens, spans, row), spans.null[row]
        scores, predicted = found["score"], 0
        # A passage without tokens has no span.
        null_score_diff = null - tf.concat([scores, [IMPOSSIBLE]], axis=0)[0]
        if self._threshold is not None:
            # Among equal scores no answer is last, and it is always kept.
            rank = tf.reduce_sum(tf.cast(scores >= null, tf.int32))
            others = tf.where(rank < self._n_best_size, max(1, self._n_best_size - 1), rank)
            none = {"answer": "", "start": -1, "end": -1, "score": null}
            found = {n: tf.concat([v[:others], [none[n]]], axis=0) for n, v in found.items()}
            scores = found["score"]
            predicted = tf.where(null_score_diff > self._threshold, tf.size(scores) - 1, 0)
        found["probability"] = tf.nn.softmax(scores)
        is_predicted = tf.range(tf.size(scores)) == predicted
        order = tf.argsort(
            tf.where(is_predicted, scores.dtype.max, scores), direction="DESCENDING", stable=True
        )
        most = self._n_best_size + 1
        filled = {"null_score_diff": null_score_diff}
        for name, (dtype, empty) in ANSWER.items():
            rest = tf.fill([most], tf.constant(empty, dtype))
            filled[name] = tf.concat([tf.gather(found[name], order), rest], axis=0)[:most]
        return filled

    def _best_texts(self, tokens, spans, row):
        """Returns the best answers with different texts, best first, at most --n_best_size.

        Returns:
          Dict of the keys of `ANSWER` but "probability", each [n].
        """
        splits = tokens.ids.row_splits
        part = slice(splits[row], splits[row + 1])
        starts, place, left = spans.starts[part], spans.place[part], spans.left[part]
        # The scores of the spans of tokens p to p + n, float64 [P, L].
        length = tf.range(tf.minimum(self._max_answer_length, tf.size(starts)), dtype=tf.int64)
        is_inside = length < left[:, None]
        ends = tf.gather(spans.ends, tf.where(is_inside, place[:, None] + length, 0))
        scores = tf.where(is_inside, starts[:, None] + ends, IMPOSSIBLE)
        flat, width = tf.reshape(scores, [-1]), tf.maximum(tf.size(length, tf.int64), 1)

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
            found = {"answer": texts, "start": start, "end": end, "score": values}
            return count * 4, is_done, {n: tf.gather(v, chosen) for n, v in found.items()}

        names = ("answer", "start", "end", "score")
        none = {name: tf.zeros([0], ANSWER[name][0]) for name in names}
        shapes = {name: tf.TensorShape([None]) for name in names}
        return tf.while_loop(
            lambda _, is_done, __: ~is_done,
            look,
            (self._n_best_size, False, none),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), shapes),
        )[2]


def with_marks(tokens):
    """Returns `Tokens` extended by the combining marks after them, as in `make_passage`."""
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


def _without_nan(logits):
    """Returns logits with nan replaced as in `answers.span_logits`."""
    return tf.where(tf.math.is_nan(logits), tf.constant(-1e9, logits.dtype), logits)
