"""The task of `run_mrc.py`: reading comprehension."""

from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.data.lines import BadRows
from nezha_tf.data.squad import read_questions
from nezha_tf.tasks.finetuning.task import FineTuning
from nezha_tf.tasks.reading_comprehension import metrics
from nezha_tf.tasks.reading_comprehension.answers import answers_to, write_answers
from nezha_tf.tasks.reading_comprehension.data import WindowedQuestions
from nezha_tf.tasks.reading_comprehension.loss import AnswerSpanLoss
from nezha_tf.tasks.reading_comprehension.search import AnswerSearch
from nezha_tf.util import console


class ReadingComprehension(FineTuning):
    """Fine-tuning on questions and passages, with `ReadingComprehensionSettings`.

    The examples of `FineTuning` are windows here; answers are found for questions.
    """

    has_head_dropout = False

    def __init__(self, settings):
        if settings.do_eval:
            metrics.require_libraries(settings.metric)
        self._search, self._searched = AnswerSearch(vars(settings)), (None, None)
        super().__init__(settings)

    def read(self, part):
        """Returns the `WindowedQuestions` of a part."""
        self.require_segments("questions")
        settings, names = self.settings, self.paths_of(part)
        bad_rows = BadRows(settings.skip_bad_rows)
        is_prediction = part == "predict"
        with_impossible = is_prediction or settings.version_2_with_negative
        questions = read_questions(names, with_impossible, not is_prediction, bad_rows)
        lengths = (settings.max_seq_length, settings.max_query_length, settings.doc_stride)
        examples = WindowedQuestions(questions, self.reader, *lengths, bad_rows)
        self.notes.append(f"{', '.join(names)}: {examples.description()}{bad_rows.note()}")
        return examples

    def task_file_settings(self):
        name = "reading_comprehension"
        own = {key: getattr(self.settings, key) for key in TASKS[name].settings}
        return {"task": name, **own}

    def make_objective(self, label_smoothing):
        return AnswerSpanLoss(label_smoothing)

    def measure(self, part, outputs):
        """Returns the metrics of `metrics.measure`.

        With --max_eval_steps, they are for the questions that have a window in these batches.
        """
        examples, predictions = self._answers(part, outputs)
        if not all(example.question.is_labelled for example in examples):
            return {}
        return metrics.measure(
            [prediction.best.text for prediction in predictions],
            [[answer.text for answer in example.question.answers] for example in examples],
            self.settings.metric,
        )

    def report(self, outputs):
        path = self._write("eval_", *self._answers("eval", outputs))
        return [f"answers to the held-out questions in {path}"]

    def write_predictions(self, outputs):
        self._write("", *self._answers("predict", outputs))

    def _answers(self, part, outputs):
        """Returns (list of `Example`, list of `Prediction`) of the questions with outputs.

        They are searched once, to be measured and written.
        """
        if self._searched[0] is not outputs:
            starts, ends = outputs["start_logits"], outputs["end_logits"]
            examples = [e for e in self.examples[part].examples if e.first_window < len(starts)]
            answers = answers_to(self._search, examples, starts, ends)
            bar = {"total": len(examples), "desc": "searching answers", "unit": "question"}
            self._searched = outputs, (examples, list(console.progress(answers, **bar)))
        return self._searched[1]

    def _write(self, prefix, examples, predictions):
        return write_answers(
            self.settings.output_dir,
            prefix,
            self.settings.predictions_format,
            [example.question.id for example in examples],
            predictions,
        )
