"""What a run must know of the task that it trains."""

import abc
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from nezha_tf.config import NezhaConfig, told_defaults
from nezha_tf.errors import UserError
from nezha_tf.model_folder.run_checkpoints import LOWEST_LOSS
from nezha_tf.modeling import positions


class Task(abc.ABC):
    """A task: its data, model, objective and evaluation, made from the program's settings.

    `Run` calls the methods in the order in which they stand here, and where the program has
    --do_predict, before the last of them `predict(model)`: that writes predictions and returns
    their metrics, a dict of name to float.

    Attributes:
      settings: the program's `RunSettings`, in which the task has filled in what its data decide.
      config: the `NezhaConfig`.
      lengths: (pieces, predictions) of an example, for the count of its arithmetic.
      train_reader: with --do_train, gives `training_batches` and the rest of what `Feed` asks of
        an `ExampleReader`.
      best_metric: `BestMetric`.
      reports_best: whether the results at a run's end are those of the best checkpoint, or of
        the last.
      fresh_names: prefixes of the names of weights that keep their random start where
        --init_checkpoint lacks them.
      rate_factors: dict of a part of a variable's path to the factor of its learning rate.
      notes: lines on the data, for whoever starts the run.
      example_counts: dict of part ("train", "eval", "predict") to the number of inputs in it,
        where it is known.
    """

    best_metric = LOWEST_LOSS
    reports_best = False
    # The pretraining heads and the pooler, which a published checkpoint may lack.
    fresh_names = ("cls/", "bert/pooler/")
    train_reader = None
    rate_factors: Mapping = MappingProxyType({})

    def __init__(self, settings):
        """Reads the configuration; a subclass opens its data files here, too.

        Args:
          settings: the program's `RunSettings`.

        Raises:
          UserError: a bad configuration or bad data.
        """
        self.settings = settings
        self.notes = []
        self.example_counts = {}
        self.config = NezhaConfig.from_json_file(settings.bert_config_file)
        defaults = told_defaults(settings.bert_config_file, self.config)
        if defaults:
            self.notes.append(defaults)

    def resolve(self, **values):
        """Fills in settings that the data decide; those that the caller has stay as they are."""
        self.settings = dataclasses.replace(self.settings, **values)

    @abc.abstractmethod
    def task_file_settings(self):
        """Returns what `task.json` says of this task alone: "task" and the rest, for JSON.

        See `model_folder.task_table`; those that all tasks have come from the program's settings.
        """

    @abc.abstractmethod
    def make_model(self, precision):
        """Returns the model with that dtype policy; called in the scope of the strategy."""

    @abc.abstractmethod
    def make_evaluation(self, strategy, model):
        """Returns the evaluation of a model on held-out examples.

        It is called with a `MovingAverage` or None and returns a dict of name to float, `loss`
        among them; `write(step, results)` writes them and returns what it wrote.
        """

    @abc.abstractmethod
    def make_objective(self, label_smoothing):
        """Returns what is trained or evaluated, for `TrainStep`."""

    def make_training_objective(self):
        """Returns `make_objective` as the settings have it, or a wrapping of it."""
        return self.make_objective(self.settings.label_smoothing)

    def check_segments(self, what, segment_ids):
        """Raises a `UserError` where the model lacks rows for segment ids.

        Args:
          what: what needs them, for the message.
          segment_ids: the ids.
        """
        needed, rows = max(segment_ids) + 1, self.config.type_vocab_size
        if rows < needed:
            raise UserError(
                f"{what} needs type_vocab_size {needed} in {self.settings.bert_config_file}, not "
                f"{rows}: segment ids name the objective (a checkpoint of two rows is extended to "
                "UniLM's six when it is loaded)"
            )

    def check_length(self, max_seq_length, flag):
        """Raises a `UserError` where the positions of the model do not reach so far."""
        positions.of(self.config).check_length(
            self.config,
            max_seq_length,
            f"--{flag}={max_seq_length}",
            where=self.settings.bert_config_file,
        )
