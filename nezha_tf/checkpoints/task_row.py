"""The parts of a row of the table of tasks: kinds of models, their heads, and a tab."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.util import forms
from nezha_tf.util.errors import UserError

# More tokens than any model here can read or write at once.
_MOST_TOKENS = 1 << 20


class Value(NamedTuple):
    """A kind of value."""

    words: str  # its description in messages
    fits: Callable  # function of a JSON value: whether it is of this kind


def one_of(*choices):
    """Returns the `Value` that is one of the choices."""
    return Value(f"one of {', '.join(choices)}", lambda value: value in choices)


def at_least(least):
    """Returns the `Value` of a number of tokens, an int of at least `least`."""
    words = f"a whole number of at least {least} and at most {_MOST_TOKENS}"
    return Value(words, lambda value: type(value) is int and least <= value <= _MOST_TOKENS)


def _are_texts(value):
    return isinstance(value, list) and all(map(forms.is_text, value))


BOOL = Value("true or false", lambda value: isinstance(value, bool))
NUMBER = Value("a number", forms.is_finite)
TEXT = Value("a text", forms.is_text)
TEXTS = Value("a list of texts", _are_texts)
NAMES = Value("a list of different texts", lambda v: _are_texts(v) and len(set(v)) == len(v))


class Head(NamedTuple):
    """A part of a model on top of the encoder.

    Attributes:
      prefix: the prefix of the TF1 names of its weights.
      outputs: dict of the names of its outputs to their names in transformers.
      from_pooler: whether its input is the pooler's output.
    """

    prefix: str
    outputs: dict[str, str]
    from_pooler: bool = False


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of model that a checkpoint may contain; its heads distinguish it from other kinds.

    Attributes:
      name: its unique name.
      model_class: our Keras model; its arguments are a `NezhaConfig` and the `arguments`.
      heads: its `Head`s.
      architecture: the name of its class in transformers after "Bert" or "Nezha", or what stands
        for it in `HuggingFaceModel.classes`; None: there is no such class.
      arguments: which of "num_labels" and "max_seq_length" the class takes.
      settings: the settings in `task.json` that select this kind, if the task has several kinds.
      has_choices: whether its inputs are [B, C, T], C sequences for each example.
    """

    name: str
    model_class: type
    heads: tuple[Head, ...]
    architecture: str | None = None
    arguments: tuple[str, ...] = ()
    settings: dict = dataclasses.field(default_factory=dict)
    has_choices: bool = False

    def model(self, config, num_labels=1, max_seq_length=None, layer_mix=False, **kwargs):
        """Returns our model, with random weights; see `NezhaEncoder` for the arguments.

        Further ones, such as `dtype`, are those of any Keras model.
        """
        values = {"num_labels": num_labels, "max_seq_length": max_seq_length}
        given = {name: values[name] for name in self.arguments}
        # A class of an own task may have no such argument.
        given |= {"layer_mix": True} if layer_mix else {}
        return self.model_class(config, **given, **kwargs)

    @property
    def prefixes(self):
        """The prefixes of the TF1 names of its heads, a tuple of str."""
        return tuple(head.prefix for head in self.heads)

    @property
    def outputs(self):
        """Dict of the names of its heads' outputs to their names in transformers."""
        return {ours: theirs for head in self.heads for ours, theirs in head.outputs.items()}

    @property
    def has_labels(self):
        """Whether its head has a variable number of labels."""
        return "num_labels" in self.arguments

    @property
    def reads_pooler(self):
        """Whether a head reads the pooler's output."""
        return any(head.from_pooler for head in self.heads)

    def num_labels(self, shapes):
        """Returns the rows of the head of labels in {TF1 name: shape}, or 1 if there is none."""
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
    """A tab of the demo's page.

    Attributes:
      title: its title, which no other tab has.
      layout: function of the module `serving.tabs` and a dict of a model's name to its
        `serving.signature.Servable`; lays out the content.
      outputs: sets of names of outputs. An export that has all names of one of the sets is shown
        here, because no other tab's exports have them all.
    """

    title: str
    layout: Callable
    outputs: tuple[set[str], ...] = ()


@dataclasses.dataclass(frozen=True)
class TaskRow:
    """A row of the table. Only `settings` and `kinds` are required.

    Attributes:
      settings: dict of the names of this task's own keys in `task.json` to their kinds of values;
        a key that is also a flag of the program has the flag's name.
      kinds: the `Kind`s of its model; if there are several, their `settings` distinguish them.
      optional: the same of keys that may be missing: older runs do not have them, or a run writes
        them only if it uses them.
      head_settings: dict of further settings that say what the head is and what it reads to the
        flags that decide them (often of the same name); see `head_flags`.
      serving: function (or class) of a `ModelFolder` and its model that returns its
        `serving.signature.Serving`; None: the model serves as its objectives trained it to.
      tab: the `Tab` of such a serving; None: the page only shows the model's attention.
      published: function of a `hugging_face_settings.Published` that returns the settings of a
        published model; None: published models of this kind have no task.
      model_class: function of the settings that returns the class of the model; None: the class
        of the `Kind`.
      pipeline_tag: what the hubs of models call the task, a value of Hugging Face's `pipeline_tag`
        for the model card; None: what its objectives trained the model to, or vectors.
      form: the objective whose input format the model uses for a text, a key of
        `config.SEGMENT_IDS`.
    """

    settings: dict[str, Value]
    kinds: tuple[Kind, ...]
    optional: dict[str, Value] = dataclasses.field(default_factory=dict)
    head_settings: dict[str, str] = dataclasses.field(default_factory=dict)
    serving: Callable | None = None
    tab: Tab | None = None
    published: Callable | None = None
    model_class: Callable | None = None
    pipeline_tag: str | None = None
    form: str = "bidirectional"

    @property
    def head_flags(self):
        """Dict of settings to the flags that decide them; a folder is only used with the same.

        They are those of the `kinds`, whose flags have their names, and `head_settings`.
        """
        own = {name: name for kind in self.kinds for name in kind.settings}
        return own | self.head_settings

    def kind(self, settings):
        """Returns the `Kind` of a model with these settings in its `task.json`.

        Of those that fit it is the one with most settings. A key that is missing, as in folders of
        older runs, is False.
        """
        fitting = [
            kind
            for kind in self.kinds
            if all(settings.get(name, False) == value for name, value in kind.settings.items())
        ]
        if not fitting:
            raise UserError(f"no kind of model of {settings['task']} has such settings: {settings}")
        return max(fitting, key=lambda kind: len(kind.settings))
