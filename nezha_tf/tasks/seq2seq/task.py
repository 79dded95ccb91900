"""Sequence to sequence as a task: what `run_seq2seq.py` trains, evaluates and predicts."""

import contextlib
import os

from nezha_tf import console, files
from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data.corruption.policies import check_share
from nezha_tf.data.corruption.targets import MaskedTarget, ShiftedTarget
from nezha_tf.data.in_memory import InMemoryReader
from nezha_tf.data.rows import read_rows
from nezha_tf.data.schema import Lengths
from nezha_tf.errors import UserError, require_flag
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.model_folder import task_file
from nezha_tf.model_folder.run_checkpoints import BestMetric
from nezha_tf.modeling.pretraining import NezhaForMaskedLM
from nezha_tf.objectives.seq2seq import Seq2SeqLoss
from nezha_tf.tasks.seq2seq import metrics
from nezha_tf.tasks.seq2seq.features import TrainingFeatures
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.tasks.seq2seq.writing import TargetWriter, options_of, write_predictions
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.evaluation import Evaluation
from nezha_tf.training.task import Task

PREDICTIONS_FILE = "predictions.jsonl"


class Seq2Seq(Task):
    """Fine-tuning on pairs of texts; see run_seq2seq.py for the flags."""

    def __init__(self, flags):
        super().__init__(flags)
        self._check()
        self._made_writer = None
        self._tokenizer = FullTokenizer(
            require_flag(flags["vocab_file"], "vocab_file"), flags["do_lower_case"]
        )
        check_vocabulary(self.config, self._tokenizer.vocabulary)
        self._packing = Packing(
            self._tokenizer,
            flags["max_source_length"],
            flags["max_target_length"],
            flags["truncate_source"],
            flags["truncate_target"],
        )
        self._options = options_of(flags, self._tokenizer)
        length = self._packing.max_seq_length
        self.check_length(length, "max_source_length + --max_target_length")
        self._prediction = self._make_prediction()
        self.lengths = Lengths(length, self._prediction.max_predictions_per_seq)
        self.best_metric = BestMetric(flags["best_metric"], flags["best_metric"] != "loss")
        if flags["do_train"]:
            pairs = self._read("train_file")[1]
            epochs = flags["num_train_steps"] * flags["train_batch_size"] / len(pairs)
            self.notes[-1] += f", gone through {epochs:.1f} times"
            self.train_reader = self._reader(pairs)
        if flags["do_eval"]:
            self._eval_rows, self._eval_pairs = self._read("eval_file")
        if flags["do_predict"]:
            self._predict_rows, self._predict_pairs = self._read("predict_file", ("tgt",))

    def settings(self):
        own = {"task": "seq2seq", "max_seq_length": self._packing.max_seq_length}
        return own | {name: self.flags[name] for name in task_file.SETTINGS["seq2seq"]}

    def make_model(self, precision):
        model = NezhaForMaskedLM(self.config, dtype=precision)
        # Nothing is predicted from [CLS], so the pooler has no gradient.
        model.encoder.pooler.trainable = False
        return model

    def make_objective(self, label_smoothing):
        return Seq2SeqLoss(label_smoothing)

    def make_evaluation(self, strategy, model):
        flags = self.flags
        count = flags["max_eval_generated"]
        return Seq2SeqEvaluation(
            strategy,
            model,
            self.make_objective(0.0),
            self._reader(self._eval_pairs),
            flags["eval_batch_size"],
            flags["max_eval_steps"],
            flags["output_dir"],
            flags["jit_compile"],
            writer=self._writer(model) if count else None,
            rows=self._eval_rows[:count],
            pairs=self._eval_pairs.first(count),
        )

    def predict(self, model):
        """Writes `predictions.jsonl`; returns the metrics where every row has a target."""
        rows = self._predict_rows
        written = self._writer(model)(rows, self._predict_pairs)
        path = os.path.join(self.flags["output_dir"], PREDICTIONS_FILE)
        write_predictions(path, rows, written)
        if not all("tgt" in row.values for row in rows):
            return {}
        return _measure(rows, written)

    def _check(self):
        flags = self.flags
        self.check_segments("sequence to sequence", SEGMENT_IDS["seq2seq"])
        if flags["best_metric"] in metrics.NAMES and not flags["max_eval_generated"]:
            raise UserError(
                f"--best_metric={flags['best_metric']} is of texts that are written; raise "
                "--max_eval_generated"
            )
        if flags["do_eval"] and flags["max_eval_generated"]:
            metrics.require_libraries()

    def _make_prediction(self):
        flags = self.flags
        if flags["target_prediction"] == "shift":
            return ShiftedTarget(flags["max_target_length"])
        share = flags["masked_lm_prob"]
        check_share(share)
        most = flags["max_predictions_per_seq"]
        most = most or max(1, round(flags["max_target_length"] * share))
        return MaskedTarget(self._tokenizer.vocabulary, share, most, flags["max_target_length"])

    def _read(self, flag, optional=()):
        """Returns the rows and the pairs of a flag's files; notes what they hold."""
        names = files.expand(require_flag(self.flags[flag], flag), flag)
        rows = [row for name in names for row in read_rows(name, ("src", "tgt"), optional)]
        pairs = self._packing.pack(rows)
        self.example_counts[flag.removesuffix("_file")] = len(rows)
        self.notes.append(
            f"{', '.join(names)}: {console.plural(len(rows), 'pair')}{pairs.truncation()}"
        )
        return rows, pairs

    def _reader(self, pairs):
        features = TrainingFeatures(pairs, self._prediction, self._packing.max_seq_length)
        return InMemoryReader(len(pairs), features)

    def _writer(self, model):
        """Returns the one writer of a run, which is compiled once."""
        flags = self.flags
        if self._made_writer is None:
            self._made_writer = TargetWriter(
                model,
                self._tokenizer,
                TargetFormat(target_prediction=flags["target_prediction"]),
                self._options,
                flags["predict_batch_size"],
                flags["seed"],
                flags["jit_compile"],
            )
        return self._made_writer


class Seq2SeqEvaluation(Evaluation):
    """The held-out loss, and how near the texts that are written come to the targets."""

    def __init__(self, *arguments, writer, rows, pairs):
        """Args:
        *arguments: as for `Evaluation`.
        writer: `TargetWriter`, or None for the loss alone.
        rows, pairs: what it writes for.
        """
        super().__init__(*arguments)
        self._writer = writer
        self._rows = rows
        self._pairs = pairs

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
