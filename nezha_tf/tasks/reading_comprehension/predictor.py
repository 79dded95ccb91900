"""Answers one question about one passage."""

from nezha_tf.data.squad import Question
from nezha_tf.serving.predictor import Found, Predictor
from nezha_tf.tasks.reading_comprehension.answers import AnswerSearch
from nezha_tf.tasks.reading_comprehension.windows import Windowing


class AnswerFinder(Predictor):
    """Returns a list of `Found` for a question and a passage: the prediction, then the others."""

    ability = "reading_comprehension"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        task = folder.task
        lengths = (task[name] for name in ("max_seq_length", "max_query_length", "doc_stride"))
        self._windowing = Windowing(folder.tokenizer, *lengths)
        has_impossible = task["version_2_with_negative"]
        self._search = AnswerSearch(
            task["n_best_size"],
            task["max_answer_length"],
            task["null_score_diff_threshold"] if has_impossible else None,
        )

    def __call__(self, question, passage):
        self._ids(question, "the question")
        self._ids(passage, "the passage")
        windows = self._windowing([Question("", passage, question, ())])
        outputs = [
            self._outputs(ids, segment_ids)
            for ids, segment_ids in zip(
                windows.arrays["input_ids"], windows.arrays["segment_ids"], strict=True
            )
        ]
        logits = ([o[name][0].numpy() for o in outputs] for name in ("start_logits", "end_logits"))
        prediction = self._search(windows.examples[0], *logits)
        best = prediction.best
        ordered = [best, *(c for c in prediction.candidates if c.text != best.text)]
        return [Found(c.start, c.end, c.text, c.probability) for c in ordered]
