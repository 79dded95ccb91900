"""What a row of the table of tasks is made of: kinds of models with their heads, and a tab."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.model_folder.values import Value


class Head(NamedTuple):
    """A part of a model behind the encoder.

    Attributes:
      prefix: how the TF1 names of its weights begin.
      outputs: dict of the names of what it puts out to their names in transformers.
      from_pooler: whether it reads what the pooler puts out.
    """

    prefix: str
    outputs: dict[str, str]
    from_pooler: bool = False


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of model that a checkpoint may hold, told from the others by its heads.

    Attributes:
      name: of its own.
      model_class: our Keras model, made of a `NezhaConfig` and of the `arguments`.
      heads: its `Head`s.
      architecture: what its class is called in transformers, behind "Bert" or "Nezha"; None where
        it has none.
      arguments: those of "num_labels" and "max_seq_length" that the class takes.
      settings: of a task that has several kinds, what its `task.json` says where it is this one.
    """

    name: str
    model_class: type
    heads: tuple[Head, ...]
    architecture: str | None = None
    arguments: tuple[str, ...] = ()
    settings: dict = dataclasses.field(default_factory=dict)

    def model(self, config, num_labels=1, max_seq_length=None):
        """Returns our model, with random weights.

        Args:
          config: a `NezhaConfig`.
          num_labels: rows of a head of labels; of no matter to other kinds.
          max_seq_length: as for `NezhaEncoder`; of no matter to models of pretraining.
        """
        values = {"num_labels": num_labels, "max_seq_length": max_seq_length}
        return self.model_class(config, **{name: values[name] for name in self.arguments})

    @property
    def prefixes(self):
        """How the TF1 names of its heads begin, a tuple of str."""
        return tuple(head.prefix for head in self.heads)

    @property
    def outputs(self):
        """Dict of the names of what its heads put out to their names in transformers."""
        return {ours: theirs for head in self.heads for ours, theirs in head.outputs.items()}

    @property
    def has_labels(self):
        """Whether its head is of any number of labels."""
        return "num_labels" in self.arguments

    @property
    def reads_pooler(self):
        """Whether a head reads what the pooler puts out."""
        return any(head.from_pooler for head in self.heads)

    def num_labels(self, shapes):
        """Returns the rows of the head of labels in a checkpoint, or 1 where it has none.

        Args:
          shapes: dict of TF1 name to shape, a list of int.
        """
        if not self.has_labels:
            return 1
        found = (
            shapes[name][0]
            for prefix in self.prefixes
            for name in sorted(shapes)
            if name.startswith(prefix) and shapes[name]
        )
        return next(found, 1)


class Tab(NamedTuple):
    """A tab of the demo's page: its title, and "module:function" of what lays it out."""

    title: str
    layout: str


@dataclasses.dataclass(frozen=True)
class Task:
    """A row of the table. All but `settings` and `kinds` may be left out.

    Attributes:
      settings: dict of what `task.json` has of this task alone, name to kind of value; what is a
        flag of the program has the flag's name.
      kinds: the `Kind`s of its model. Where it has several, their `settings` tell them apart.
      training: "module:name" of the `training.task.Task` that trains it.
      serving: "module:name" of what makes the `serving.saved_model.Serving` of a `ModelFolder`:
        a class, or a function that may return None. Without one the export fills blanks.
      predictor: "module:name" of what makes the `serving.predictor.Predictor` of a `ModelFolder`
        and its model, likewise.
      exported: "module:name" of what does the same with an export, a `demo.exports.Exported`.
      tab: the `Tab` of predictors whose ability has the task's name.
      published: function of a `hugging_face_settings.Published` that returns the settings of a
        model that no run of ours has left; None: such a model is of no task.
      model_class: function of the settings that returns the class of the model, where these and no
        `Kind` say it.
      form: the objective in whose form its model reads a text, a key of `config.SEGMENT_IDS`.
    """

    settings: dict[str, Value]
    kinds: tuple[Kind, ...]
    training: str | None = None
    serving: str | None = None
    predictor: str | None = None
    exported: str | None = None
    tab: Tab | None = None
    published: Callable | None = None
    model_class: Callable | None = None
    form: str = "bidirectional"

    def kind(self, settings):
        """Returns the `Kind` of a model whose `task.json` holds these settings."""
        return next(k for k in self.kinds if k.settings.items() <= settings.items())
