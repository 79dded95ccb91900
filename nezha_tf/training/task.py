"""The interface of tasks to a run."""

import abc
import dataclasses
import os
from collections.abc import Mapping
from types import MappingProxyType

from nezha_tf.checkpoints.kinds import LAYER_MIX, POOLER, kind_of_settings
from nezha_tf.checkpoints.places import weights_of
from nezha_tf.checkpoints.published import read_config
from nezha_tf.checkpoints.run_checkpoints import LOWEST_LOSS
from nezha_tf.modeling import positions
from nezha_tf.training import compiling, start
from nezha_tf.util.errors import UserError


class Task(abc.ABC):
    """A task: its data, model, objective and evaluation, made from the program's settings.

    Tasks of programs with --do_predict also have `predict(model)`, which writes predictions and
    returns their metrics, a dict of name to float.

    Attributes:
      settings: the program's `RunSettings`, in which the task has filled in values that depend on
        the data.
      config: the `NezhaConfig`.
      lengths: (tokens, predictions) of a sequence, to count its arithmetic.
      num_outputs: number of places of a sequence for which the last layer computes an output in
        training, as far as its arithmetic is counted; None: all.
      num_middle: the same of the layers between the first and the last.
      sequences_per_example: number of sequences of an example.
      num_labels: number of labels that a head of labels scores.
      least_compared: the fewest examples of a micro-batch for which the objective has a gradient.
      train_reader: with --do_train, a reader with the methods of `ExampleReader` that `Feed` uses.
      best_metric: `BestMetric`.
      reports_best: whether the results at the end of a run are those of the best checkpoint; if
        False, those of the last.
      fresh_names: prefixes of the names of weights that stay random if --init_checkpoint lacks
        them.
      rate_factors: dict of a part of a variable's path to the factor of its learning rate.
      memory_length: the number of tokens that the model remembers of earlier batches; 0: none.
      notes: lines on the data, which the run prints.
      example_counts: dict of part ("train", "eval", "predict") to its number of inputs, if known.
    """

    best_metric = LOWEST_LOSS
    reports_best = False
    # The pretraining heads, the pooler and the mixture, which a published checkpoint may lack.
    fresh_names = ("cls/", POOLER, LAYER_MIX)
    train_reader = None
    memory_length = 0
    num_outputs = None
    num_middle = None
    sequences_per_example = 1
    least_compared = 1
    num_labels = 1
    rate_factors: Mapping = MappingProxyType({})

    def __init__(self, settings):
        """Reads the configuration; subclasses also open their data files here.

        Args:
          settings: the program's `RunSettings`.

        Raises:
          UserError: the configuration, the data or a file of the initial weights is bad.
        """
        self.settings = settings
        if settings.train_minutes is not None:  # The defaults would seem to be the length.
            self.resolve(num_train_steps=None, num_warmup_steps=None)
        self.example_counts = {}
        config_file, weights = settings.bert_config_file, _weights(settings)
        self.config, self.notes = read_config(config_file, weights, is_trained=True)
        if settings.do_train and settings.layer_mix and not settings.init_checkpoint:
            self.notes.append(
                "warning: --layer_mix without --init_checkpoint: a new run freezes random weights"
            )

    @property
    def is_short(self):
        """Whether XLA's compiler would take longer than it saves in training on a processor."""
        return compiling.has_little_arithmetic(self)

    def resolve(self, **values):
        """Sets fields of `settings` that depend on the data; the caller's object is unchanged."""
        self.settings = dataclasses.replace(self.settings, **values)

    @abc.abstractmethod
    def task_file_settings(self):
        """Returns the task's own contents of `task.json`, a dict with "task" and JSON values.

        See `checkpoints.task_table`; the common keys of all tasks come from the settings.
        """

    def make_model(self, precision):
        """Returns the model with a dtype policy; it is called in the scope of the strategy.

        It is of the class that the table of tasks has for the settings, by which it is opened
        later.
        """
        kind = kind_of_settings(self.task_file_settings(), self.config)
        length, layer_mix = self.settings.max_seq_length, self.settings.layer_mix
        return kind.model(self.config, self.num_labels, length, layer_mix, dtype=precision)

    @abc.abstractmethod
    def make_evaluation(self, strategy, model):
        """Returns the evaluation of a model on held-out examples.

        The evaluation is called with a `MovingAverage` or None and returns a dict of name to
        float with `loss`; its `write(step, results)` writes files and returns their contents.
        """

    @abc.abstractmethod
    def make_objective(self, label_smoothing):
        """Returns the objective to train or evaluate, for `TrainStep`."""

    def make_training_objective(self):
        """Returns `make_objective` with the settings' label smoothing; subclasses may wrap it."""
        return self.make_objective(self.settings.label_smoothing)

    def check_segments(self, what, segment_ids):
        """Raises a `UserError` if the model lacks rows for segment ids.

        Args:
          what: what needs them, for the message.
          segment_ids: the ids.
        """
        needed, rows = max(segment_ids) + 1, self.config.type_vocab_size
        if rows < needed:
            raise UserError(
                f"{what} needs type_vocab_size {needed} in {self.settings.bert_config_file}, not "
                f"{rows}: segment ids tell the objectives apart (a checkpoint with two rows is "
                "extended to UniLM's six when it is loaded)"
            )

    def check_length(self, max_seq_length, flag):
        """Raises a `UserError` if the model has fewer positions than this."""
        positions.of(self.config).check_length(
            self.config,
            max_seq_length,
            f"--{flag}={max_seq_length}",
            where=self.settings.bert_config_file,
        )


def _weights(settings):
    """Returns the path of the weights that the configuration is of.

    These are the initial ones or, without them, those in the configuration's folder, if there are
    any: so a later program that takes the same file and the run's weights reads it in the same way.
    """
    if settings.init_checkpoint:
        return start.own_of_run(settings) or weights_of(settings.init_checkpoint)[0]
    return os.path.dirname(settings.bert_config_file) or "."
