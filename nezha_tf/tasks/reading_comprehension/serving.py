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
LOGITS = {"start_logits": tf.float32, "end_logits": tf.float32}
# The score of impossible spans.
IMPOSSIBLE = tf.float64.min


class Ranked(NamedTuple):
    """The K answers of a passage: the predicted one, then the others by falling score.

    Attributes:
      spans: int64 [K, 2], the first and last token; -1 for no answer, and after the last one.
      scores, probabilities: float64 [K]; 0 after the last one.
      null_score_diff: float64 [], see `MEANINGS`.
    """

    spans: tf.Tensor
    scores: tf.Tensor
    probabilities: tf.Tensor
    null_score_diff: tf.Tensor


class Spans(NamedTuple):
    """The values that the search needs for the N tokens of all passages, concatenated.

    Attributes:
      starts: float64 [N], the logit of each token as a start.
      ends: float64 [M], the logits of all windows' tokens as ends.
      place: int64 [N], the index in `ends` of each token.
      left: int64 [N], the number of tokens from each token to the end of its window.
      null: float64 [B], the score of no answer in each passage.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    place: tf.Tensor
    left: tf.Tensor
    null: tf.Tensor


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
        outputs = self._model(inputs)
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
        starts, ends = (_candidates(tf.reshape(logits, [-1])) for logits in (starts, ends))
        left = tf.gather(windows.lengths, window) - within
        return Spans(tf.gather(starts, place), ends, place, left, null)

    def _answers(self, tokens, spans):
        """Returns the signature's outputs."""
        splits = tokens.ids.row_splits

        def search(row):
            part = slice(splits[row], splits[row + 1])
            starts, place, left = spans.starts[part], spans.place[part], spans.left[part]
            length = tf.range(tf.minimum(self._max_answer_length, tf.size(starts)), dtype=tf.int64)
            is_inside = length < left[:, None]
            ends = tf.gather(spans.ends, tf.where(is_inside, place[:, None] + length, 0))
            scores = tf.where(is_inside, starts[:, None] + ends, IMPOSSIBLE)
            return self._ranked(tokens, row, scores, spans.null[row])

        rows, most = tf.range(tokens.ids.nrows()), self._n_best_size + 1
        specs = (tf.TensorSpec(shape, tf.float64) for shape in ([most], [most], []))
        signature = Ranked(tf.TensorSpec([most, 2], tf.int64), *specs)
        ranked = tf.map_fn(search, rows, fn_output_signature=signature)
        count = most if self._gives_all else 1
        chosen = ranked.spans[:, :count]
        is_answer, base = chosen >= 0, splits[:-1, None]
        behind = [tf.size(tokens.starts.values)]  # the index of the -1 that stands for no answer
        start, end = (
            tf.gather(
                tf.concat([values.values, [-1]], axis=0),
                tf.where(is_answer[..., side], base + chosen[..., side], behind),
            )
            for side, values in enumerate((tokens.starts, tokens.ends))
        )
        places = (tf.repeat(rows, count), tf.reshape(start, [-1]), tf.reshape(end, [-1]))
        answer = tf.reshape(text_of(tokens.characters, *places), tf.shape(start))
        probabilities = tf.cast(ranked.probabilities, tf.float32)
        outputs = {
            "answer": answer[:, 0],
            "start": start[:, 0],
            "end": end[:, 0],
            "score": tf.cast(ranked.scores[:, 0], tf.float32),
            "probability": probabilities[:, 0],
        }
        if self._threshold is not None:
            outputs["null_score_diff"] = tf.cast(ranked.null_score_diff, tf.float32)
        if self._gives_all:
            outputs |= {"answers": answer, "starts": start, "ends": end}
            outputs["probabilities"] = probabilities
        return outputs

    def _ranked(self, tokens, row, scores, null):
        """Returns the `Ranked` of a passage, the same as `answers.AnswerSearch` finds.

        Args:
          tokens: `Tokens` of all passages.
          row: int64 [], the number of the passage.
          scores: float64 [P, L], the scores of the spans of tokens p to p + n.
          null: float64 [], the score of no answer.
        """
        spans, values = self._distinct(tokens, row, scores)
        # A passage without tokens has no span.
        null_score_diff = null - tf.concat([values, [IMPOSSIBLE]], axis=0)[0]
        predicted = 0
        if self._threshold is not None:
            # Among equal scores no answer is last, and it is always kept.
            rank = tf.reduce_sum(tf.cast(values >= null, tf.int32))
            others = tf.where(rank < self._n_best_size, max(1, self._n_best_size - 1), rank)
            spans = tf.concat([spans[:others], [[-1, -1]]], axis=0)
            values = tf.concat([values[:others], [null]], axis=0)
            predicted = tf.where(null_score_diff > self._threshold, tf.size(values) - 1, 0)
        is_predicted = tf.range(tf.size(values)) == predicted
        order = tf.argsort(
            tf.where(is_predicted, values.dtype.max, values), direction="DESCENDING", stable=True
        )
        most = self._n_best_size + 1

        def filled(ordered, fill):
            return tf.concat([tf.gather(ordered, order), fill], axis=0)[:most]

        spans = filled(spans, tf.fill([most, 2], tf.constant(-1, tf.int64)))
        none = tf.zeros([most], tf.float64)
        scores, probabilities = filled(values, none), filled(tf.nn.softmax(values), none)
        return Ranked(spans, scores, probabilities, null_score_diff)

    def _distinct(self, tokens, row, scores):
        """Returns the best spans with different texts, int64 [n, 2], and their scores [n]."""
        width = tf.shape(scores, tf.int64)[1]
        flat = tf.reshape(scores, [-1])
        base = tf.gather(tokens.ids.row_splits, row)

        def look(count, _, *__):
            top = tf.math.top_k(flat, tf.minimum(count, tf.size(flat)))
            is_span = top.values > IMPOSSIBLE
            values, place = (tf.boolean_mask(v, is_span) for v in top)
            place = tf.cast(place, tf.int64)
            first = place // tf.maximum(width, 1)
            last = first + place % tf.maximum(width, 1)
            texts = text_of(
                tokens.characters,
                tf.fill(tf.shape(first), row),
                tf.gather(tokens.starts.values, base + first),
                tf.gather(tokens.ends.values, base + last),
            )
            distinct, which = tf.unique(texts)
            chosen = tf.math.unsorted_segment_min(
                tf.range(tf.size(which)), which, tf.size(distinct)
            )[: self._n_best_size]
            # If spans have the same text, more spans are needed to get enough texts.
            is_done = (tf.size(distinct) >= self._n_best_size) | (tf.size(place) < count)
            spans = tf.stack([tf.gather(first, chosen), tf.gather(last, chosen)], axis=1)
            return count * 4, is_done, spans, tf.gather(values, chosen)

        spans, values = tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.float64)
        state = (self._n_best_size, False, spans, values)
        shapes = [tf.TensorShape(shape) for shape in ([], [], [None, 2], [None])]
        *_, spans, values = tf.while_loop(
            lambda _, is_done, *__: ~is_done, look, state, shape_invariants=tuple(shapes)
        )
        return spans, values


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


def _candidates(logits):
    """Returns logits with nan replaced as in `answers.span_logits`."""
    return tf.where(tf.math.is_nan(logits), tf.constant(-1e9, logits.dtype), logits)
