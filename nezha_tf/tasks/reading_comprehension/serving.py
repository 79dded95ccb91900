"""Exports of models that answer questions, with each answer's characters in the raw passage."""

import copy

import tensorflow as tf

from nezha_tf.serving.signature import Serving, as_graphs
from nezha_tf.serving.text_reader import INPUT_MEANINGS, of_ids, text_spec
from nezha_tf.serving.windows import in_chunks, windows_on
from nezha_tf.tasks.reading_comprehension.data import with_marks
from nezha_tf.tasks.reading_comprehension.search import AnswerSearch, ReadPassages
from nezha_tf.text.packing import heads

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
# The names of the outputs for all answers, on the page.
OF_ALL = {"answer": "answers", "start": "starts", "end": "ends", "probability": "probabilities"}
LOGITS = {"start_logits": tf.float32, "end_logits": tf.float32}


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
        self._search = AnswerSearch(task)
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
            return self._answers(self._search(self._read(query, tokens)))

        specs = [text_spec("question"), text_spec("passage")]
        return as_graphs({"serving_default": (of_texts, specs), "from_ids": of_ids(self._logits)})

    def _logits(self, inputs):
        outputs = self._model(inputs, all_outputs=True)
        return {name: outputs[name] for name in LOGITS}

    def _read(self, query, tokens):
        """Returns the `ReadPassages` of `Tokens`, for questions, ids RaggedTensor [B, (n)]."""
        offset = query.row_lengths() + 2  # [CLS] question [SEP]
        room = self._length - 1 - offset
        windows = windows_on(tokens.ids.row_lengths(), room, self._stride, is_last_full=False)
        shown = windows.show(tokens.ids)
        inputs = self._reader.packed(tf.gather(query, windows.rows), shown)
        logits = in_chunks(self._logits, inputs, LOGITS)
        return ReadPassages(tokens, windows, offset, *(logits[name] for name in LOGITS))

    def _answers(self, ranked):
        """Returns the signature's outputs, of what the search found."""
        for name in ("score", "probability", "null_score_diff"):
            ranked[name] = tf.cast(ranked[name], tf.float32)
        predicted = ranked["predicted"][:, None]
        names = ("answer", "start", "end", "score", "probability")
        outputs = {name: tf.gather(ranked[name], predicted, batch_dims=1)[:, 0] for name in names}
        if self._search.has_null:
            outputs["null_score_diff"] = ranked["null_score_diff"]
        if self._gives_all:
            place = tf.range(tf.shape(ranked["score"])[1])
            order = tf.argsort(tf.where(place == predicted, -1, place), stable=True)
            for name, of_all in OF_ALL.items():
                outputs[of_all] = tf.gather(ranked[name], order, batch_dims=1)
        return outputs
