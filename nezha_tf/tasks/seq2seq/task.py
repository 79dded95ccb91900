"""The task of `run_seq2seq.py`: sequence to sequence."""

import contextlib
import os

from nezha_tf.checkpoints.run_checkpoints import BestMetric
from nezha_tf.checkpoints.task_table import TASKS
from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data.in_memory import InMemoryReader
from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import read_pairs
from nezha_tf.data.schema import Lengths
from nezha_tf.generation.sources import Packing, Side
from nezha_tf.generation.writing import TargetWriter, write_predictions
from nezha_tf.generation.writing_format import format_of, source_side
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.policies import check_share
from nezha_tf.tasks.seq2seq import metrics
from nezha_tf.tasks.seq2seq.features import MaskedTarget, ShiftedTarget, TrainingFeatures
from nezha_tf.tasks.seq2seq.loss import Seq2SeqLoss
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.evaluation import Evaluation
from nezha_tf.training.task import Task
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_flag

PREDICTIONS_FILE = "predictions.jsonl"


class Seq2Seq(Task):
    """Fine-tuning on pairs of texts, with `Seq2SeqSettings`."""

    def __init__(self, settings):
        super().__init__(settings)
        self._check()
        self._made_writer = None
        self._tokenizer = FullTokenizer(
            require_flag(settings.vocab_file, "vocab_file"), settings.do_lower_case
        )
        check_vocabulary(self.config, self._tokenizer.vocabulary)
        target = Side("target", 1, settings.max_target_length, settings.truncate_target)
        self._packing = Packing(self._tokenizer, source_side(vars(settings)), target)
        self._form = format_of(vars(settings), self._tokenizer)
        length = settings.max_source_length + settings.max_target_length
        self.check_length(length, "max_source_length + --max_target_length")
        self._prediction = self._make_prediction()
        self.lengths = Lengths(length, self._prediction.max_predictions_per_seq)
        self.best_metric = BestMetric(settings.best_metric, settings.best_metric != "loss")
        if settings.do_train:
            pairs = self._read("train_file")[1]
            if settings.train_minutes is None:
                epochs = settings.num_train_steps * settings.train_batch_size / len(pairs)
                self.notes[-1] += f", {epochs:.1f} passes"
            self.train_reader = self._reader(pairs)
        if settings.do_eval:
            self._eval_rows, self._eval_pairs = self._read("eval_file")
        if settings.do_predict:
            self._predict_rows, self._predict_pairs = self._read("predict_file", ("tgt",))
            self._measures = all("tgt" in row.values for row in self._predict_rows)
            if self._measures:
                metrics.require_libraries()

    def task_file_settings(self):
        own = {"task": "seq2seq", "max_seq_length": self.lengths.max_seq_length}
        row = TASKS["seq2seq"]
        return own | {name: getattr(self.settings, name) for name in (*row.settings, *row.optional)}

    def make_model(self, precision):
        model = NezhaForMaskedLM(self.config, self.settings.layer_mix, dtype=precision)
        # Nothing is predicted from [CLS], so the pooler has no gradient.
        model.encoder.pooler.trainable = False
        return model

    def make_objective(self, label_smoothing):
        return Seq2SeqLoss(label_smoothing)

    def make_evaluation(self, strategy, model):
        settings = self.settings
        count = settings.max_eval_generated
        return Seq2SeqEvaluation(
            strategy,
            model,
            self.make_objective(0.0),
            self._reader(self._eval_pairs),
            settings.eval_batch_size,
            settings.max_eval_steps,
            settings.output_dir,
            settings.jit_compile,
            writer=self._writer(model) if count else None,
            rows=self._eval_rows[:count],
            pairs=self._eval_pairs.first(count),
        )

    def predict(self, model):
        """Writes `predictions.jsonl`; returns metrics if every row has a target, else {}."""
        rows = self._predict_rows
        written = self._writer(model)(rows, self._predict_pairs)
        path = os.path.join(self.settings.output_dir, PREDICTIONS_FILE)
        write_predictions(path, rows, written)
        return _measure(rows, written) if self._measures else {}

    def _check(self):
        settings = self.settings
        self.check_segments("sequence to sequence", SEGMENT_IDS["seq2seq"])
        is_written = settings.best_metric in metrics.NAMES
        # A run that does not train takes the checkpoint that was chosen before.
        if settings.do_train and is_written and not settings.max_eval_generated:
            raise UserError(
                f"--best_metric={settings.best_metric} needs written texts; pass "
                "--max_eval_generated above 0"
            )
        if settings.do_eval and settings.max_eval_generated:
            metrics.require_libraries()

    def _make_prediction(self):
        settings = self.settings
        if settings.target_prediction == "shift":
            return ShiftedTarget(settings.max_target_length)
        share = settings.masked_lm_prob
        check_share(share)
        most = settings.max_predictions_per_seq
        most = most or max(1, round(settings.max_target_length * share))
        return MaskedTarget(self._tokenizer.vocabulary, share, most, settings.max_target_length)

    def _read(self, flag, optional=()):
        names = files.expand(require_flag(getattr(self.settings, flag), flag), flag)
        bad_rows = BadRows()
        rows = read_pairs(names, self.settings.pair_columns, optional, bad_rows)
        pairs = self._packing.pack(rows)
        self.example_counts[flag.removesuffix("_file")] = len(rows)
        self.notes.append(
            f"{', '.join(names)}: {console.plural(len(rows), 'pair')}{pairs.truncation()}"
            f"{bad_rows.note()}"
        )
        return rows, pairs

    def _reader(self, pairs):
        features = TrainingFeatures(pairs, self._prediction, self.lengths.max_seq_length)
        return InMemoryReader(len(pairs), features)

    def _writer(self, model):
        """Returns the run's only writer, so that it is compiled only once."""
        settings = self.settings
        if self._made_writer is None:
            given = (settings.predict_batch_size, settings.seed, settings.jit_compile)
            self._made_writer = TargetWriter(model, self._tokenizer, self._form, *given)
        return self._made_writer


class Seq2SeqEvaluation(Evaluation):
    """Measures the held-out loss, and the written texts against the targets."""

    def __init__(self, *arguments, writer, rows, pairs):
        """Args:
        *arguments: see `Evaluation`.
        writer: `TargetWriter`; None: only the loss is measured.
        rows, pairs: the rows and packed pairs to write for.
        """
        super().__init__(*arguments)
        self._writer, self._rows, self._pairs = writer, rows, pairs

    def __call__(self, moving_average=None):
        results = super().__call__(moving_average)
        if self._writer is None:
            return results
        place = moving_average.in_place() if moving_average else contextlib.nullcontext()
        with place:
            written = self._writer(self._rows, self._pairs)
        return {**results, **_measure(self._rows, written)}


def _measure(rows, written):
    predictions = [hypotheses[0].text for hypotheses in written]
    return metrics.measure(predictions, [row.values["tgt"] for row in rows])
