"""The base class of all understanding tasks."""

import abc
import os

import tensorflow as tf

from nezha_tf.checkpoints import run_folder
from nezha_tf.checkpoints.kinds import LAYER_MIX, POOLER, heads
from nezha_tf.checkpoints.run_checkpoints import BestMetric
from nezha_tf.data.in_memory import ArrayReader, TokenBudgetReader
from nezha_tf.serving.text_reader import TextReader
from nezha_tf.tasks.finetuning.evaluation import PredictingEvaluation, make_reader, predict
from nezha_tf.tasks.finetuning.predictions import write_predictions
from nezha_tf.tasks.finetuning.r_drop import RDrop
from nezha_tf.tasks.finetuning.settings import LEAST_COMPILED_STEPS
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import check_vocabulary
from nezha_tf.training.task import Task
from nezha_tf.util import files, storage
from nezha_tf.util.errors import UserError, require_flag


class FineTuning(Task):
    """A task on labelled examples in memory.

    A subclass reads the parts of the data (`read`), makes the model and the objective, and uses
    the objective's predictions, `outputs`: a dict of name to a list with one array for each
    example, in the examples' order.

    Attributes:
      tokenizer: `FullTokenizer`.
      reader: `TextReader`, its twin in the graph.
      examples: dict of part ("train", "eval", "predict") to the result of `read`.
    """

    reports_best = True
    # Whether there is dropout before the task's head, whatever the configuration says.
    has_head_dropout = True

    def __init__(self, settings):
        super().__init__(settings)
        vocab_file = require_flag(settings.vocab_file, "vocab_file")
        self.tokenizer = FullTokenizer(vocab_file, settings.do_lower_case)
        check_vocabulary(self.config, self.tokenizer.vocabulary)
        self.reader = TextReader(self.tokenizer)
        self.check_length(settings.max_seq_length, "max_seq_length")
        name = settings.best_metric
        self.best_metric = BestMetric(name, not name.endswith(("loss", "error")))
        parts = [part for part in ("train", "eval", "predict") if getattr(settings, f"do_{part}")]
        self.examples = {part: self.read(part) for part in parts}
        self.example_counts = {
            part: len(found.arrays["input_ids"]) for part, found in self.examples.items()
        }
        self.lengths = (settings.max_seq_length, 0)
        if settings.do_train:
            if settings.r_drop_alpha and not self.has_head_dropout:
                self.require_dropout(
                    f"--r_drop_alpha={settings.r_drop_alpha:g} compares what is the same"
                )
            self.train_reader = self._train_reader()
            self.lengths = (self.train_reader.mean_length, 0)
            self._set_course()

    def paths_of(self, part):
        """Returns the list of files of --train_file, --eval_file or --predict_file."""
        flag = f"{part}_file"
        return files.expand(require_flag(getattr(self.settings, flag), flag), flag)

    def require_segments(self, what):
        """Raises a `UserError` if the configuration lacks the segments 0 and 1 that `what` need."""
        count = self.config.type_vocab_size
        if count < 2:
            raise UserError(
                f"{what} need type_vocab_size 2 in {self.settings.bert_config_file}, not {count}"
            )

    def write_entries(self, entries):
        """Writes a dict for each example; see `predictions.write_predictions`."""
        write_predictions(self.settings.output_dir, self.settings.predictions_format, entries)

    def require_dropout(self, what):
        """Raises a `UserError` if the configuration has no dropout, so that `what` follows."""
        if not self.config.hidden_dropout_prob and not self.config.attention_probs_dropout_prob:
            raise UserError(
                f"{self.settings.bert_config_file} has no dropout (hidden_dropout_prob and "
                f"attention_probs_dropout_prob are 0), so {what}; pass a --bert_config_file that "
                "has it, such as 0.1"
            )

    @property
    def fresh_names(self):
        """Names of the pooler, the mixture, and the heads of all tasks."""
        return (POOLER, LAYER_MIX, *heads())

    @abc.abstractmethod
    def read(self, part):
        """Reads a part; it is called for "train", "eval" and "predict", in this order.

        The examples of "predict" may have no labels.

        Returns:
          `data_sets.Examples`, or another object with `arrays`.

        Raises:
          UserError: the data is bad.
        """

    @abc.abstractmethod
    def measure(self, part, outputs):
        """Returns the metrics of the outputs for a part, or for its first examples.

        They are {} if the examples, which are then to be predicted, have no labels.
        """

    def report(self, outputs):
        """Writes files on the held-out examples into the run's folder; returns lines to print."""
        return []

    @abc.abstractmethod
    def write_predictions(self, outputs):
        """Writes the predictions."""

    def make_training_objective(self):
        objective, alpha = super().make_training_objective(), self.settings.r_drop_alpha
        return RDrop(objective, alpha) if alpha else objective

    def make_evaluation(self, strategy, model):
        return PredictingEvaluation(strategy, model, self, self._reader("eval", strategy, model))

    def predict(self, model):
        """Writes predictions, and returns their metrics."""
        strategy, objective = tf.distribute.get_strategy(), self.make_objective(0.0)
        reader = self._reader("predict", strategy, model)
        sizes = (self.settings.predict_batch_size, self.settings.jit_compile)
        outputs = predict(model, objective, reader, *sizes)
        self.write_predictions(outputs)
        return self.measure("predict", outputs)

    def path(self, name):
        """Returns the path of a file in the folder of the run."""
        return os.path.join(self.settings.output_dir, name)

    def _train_reader(self):
        settings = self.settings
        kind = TokenBudgetReader if settings.batch_by_tokens else ArrayReader
        arrays = self.examples["train"].arrays
        return kind(arrays, settings.max_seq_length, settings.bucket_by_length)

    def _reader(self, part, strategy, model):
        settings = self.settings
        how = (settings.max_seq_length, settings.bucket_by_length, settings.jit_compile)
        return make_reader(strategy, model, self.examples[part].arrays, *how)

    @property
    def is_short(self):
        """Whether so few steps are trained that it does not pay to compile each length of batches.

        Of --train_minutes their number is not known, so it counts as long.
        """
        return (self.settings.num_train_steps or LEAST_COMPILED_STEPS) < LEAST_COMPILED_STEPS

    def _set_course(self):
        """Fills in the settings that depend on the number of examples."""
        settings = self.settings
        per_epoch = self.train_reader.batches_per_epoch(settings.train_batch_size)
        if settings.num_train_steps is None and settings.train_minutes is None:
            self.resolve(num_train_steps=max(1, round(per_epoch * settings.num_train_epochs)))
        if settings.save_checkpoints_steps is None:
            self.resolve(save_checkpoints_steps=per_epoch)


def labels_of_run(folder, task):
    """Returns (the file of a run's folder that holds its labels, the list of labels or []).

    Args:
      folder: the --output_dir.
      task: the name of the task in `task.json`.

    Raises:
      UserError: the file cannot be read or belongs to another task.
    """
    path = os.path.join(folder or "", run_folder.TASK_FILE)
    settings = run_folder.read_settings(folder or "", task)
    if settings:
        return path, settings["labels"]
    # Folders that are older than `task.json` have one label on each line.
    old_path = os.path.join(folder or "", "labels.txt")
    try:
        with storage.open_text(old_path) as file:
            return old_path, file.read().splitlines()
    except FileNotFoundError:
        return path, []
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {old_path}: {error}") from error
