"""What a run must know of the task that it trains."""

import abc

from nezha_tf.config import NezhaConfig, told_defaults
from nezha_tf.errors import UserError
from nezha_tf.model_folder.run_checkpoints import LOWEST_LOSS


class Task(abc.ABC):
    """A task: its data, model, objective and evaluation, made from the program's flags.

    `Run` calls the methods in the order in which they stand here, and where the program has
    --do_predict, before the last of them `predict(model)`: that writes predictions and returns
    their metrics, a dict of name to float.

    Attributes:
      config: the `NezhaConfig`.
      lengths: (pieces, predictions) of an example, for the count of its arithmetic.
      train_reader: with --do_train, gives `training_batches` and the rest of what `Feed` asks of
        an `ExampleReader`.
      best_metric: `BestMetric`.
      reports_best: whether the results at a run's end are those of the best checkpoint, or of
        the last.
      fresh_names: prefixes of the names of weights that keep their random start where
        --init_checkpoint lacks them.
      notes: lines on the data, for whoever starts the run.
      example_counts: dict of part ("train", "eval", "predict") to the number of inputs in it,
        where it is known.
    """

    best_metric = LOWEST_LOSS
    reports_best = False
    # The pretraining heads and the pooler, which a published checkpoint may lack.
    fresh_names = ("cls/", "bert/pooler/")
    train_reader = None

    def __init__(self, flags):
        """Reads the configuration; a subclass opens its data files here, too.

        Raises:
          UserError: a bad configuration or bad data.
        """
        self.flags = flags
        self.notes = []
        self.example_counts = {}
        self.config = NezhaConfig.from_json_file(flags["bert_config_file"])
        defaults = told_defaults(flags["bert_config_file"], self.config)
        if defaults:
            self.notes.append(defaults)

    @abc.abstractmethod
    def settings(self):
        """Returns what `task.json` says of this task alone: "task" and the rest, for JSON.

        See `task_file.SETTINGS`; those of all tasks are from the flags.
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
        """Returns `make_objective` as the flags have it, or a wrapping of it."""
        return self.make_objective(self.flags["label_smoothing"])

    def check_segments(self, what, segment_ids):
        """Raises a `UserError` where the model lacks rows for segment ids.

        Args:
          what: what needs them, for the message.
          segment_ids: the ids.
        """
        needed, rows = max(segment_ids) + 1, self.config.type_vocab_size
        if rows < needed:
            raise UserError(
                f"{what} needs type_vocab_size {needed} in {self.flags['bert_config_file']}, not "
                f"{rows}: segment ids name the objective (a checkpoint of two rows is extended to "
                "UniLM's six when it is loaded)"
            )

    def check_length(self, max_seq_length, flag):
        """Raises a `UserError` where absolute positions do not reach so far."""
        rows = self.config.max_position_embeddings
        if self.config.position_encoding == "absolute" and max_seq_length > rows:
            raise UserError(
                f"--{flag}={max_seq_length} is past the table of absolute positions of "
                f"{self.flags['bert_config_file']} (max_position_embeddings {rows})"
            )
