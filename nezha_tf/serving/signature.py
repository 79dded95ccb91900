"""What answers raw text: functions of a model and its tokenizer, here or in an opened export."""

import abc
import functools

import tensorflow as tf

from nezha_tf.serving.text_reader import TextReader
from nezha_tf.text.tokenization import basic_tokens
from nezha_tf.util.errors import UserError

DEFAULT = "serving_default"
# What users call the inputs that they do not know by their names.
_CALLED = {"text_pair": "the second text", "context": "the text", "choices": "a choice"}


class Serving(tf.Module, abc.ABC):
    """A model and its tokenizer, as functions that take raw text.

    It is the one way from a text to an answer: `Servable` calls the functions in this process, and
    `export.write` saves them. A subclass defines them, and describes them for the export's README.

    Attributes:
      about: a paragraph that says what the functions do.
      example: arguments of the default signature, written as in Python.
      meanings: dict of the names of inputs and outputs to their descriptions.
    """

    about: str
    example: str
    meanings: dict

    def __init__(self, model, tokenizer):
        """Args:
        model: a Keras model in float32. Its weights are saved; its layers become graphs.
        tokenizer: its `FullTokenizer`.
        """
        super().__init__(name="serving")
        self._weights = [variable.value for variable in model.weights]
        self._model = functools.partial(model, training=False)
        self._reader = TextReader(tokenizer)

    @abc.abstractmethod
    def signatures(self):
        """Returns the signatures: dict of name to `tf.function` with an input signature.

        The first is "serving_default". The spec of each argument has the argument's name; each
        function returns a dict of name to tensor.
        """

    def for_page(self):
        """Returns this, or one that answers with more of what it finds, for the demo's page."""
        return self

    def assets(self):
        """Returns dict of file name to content: files in which users look up the outputs."""
        return {"vocab.txt": "".join(f"{token}\n" for token in self._reader.vocabulary.tokens)}


class Servable:
    """Signatures that answer one example at a time: those of a `Serving` or of an opened export.

    Attributes:
      inputs: the names of the inputs of the default signature, a set of str.
      labels: the labels in the order of the output `probabilities`; [] if there are none.
    """

    def __init__(self, signatures, owner):
        """The owner, a `Serving` or what `tf.saved_model.load` returned, holds the weights."""
        self._owner = owner
        self._answer = function = signatures[DEFAULT]
        if isinstance(owner, Serving):
            self.inputs = {spec.name for spec in function.input_signature}
        else:
            self.inputs = set(function.structured_input_signature[1])
        self.labels = plain(signatures["labels"]()["labels"]) if "labels" in signatures else []

    def __call__(self, **texts):
        """Returns the outputs for one example: dict of name to str, number or list of these.

        Each argument is a text, or a list of texts; a `UserError` if one has no token.
        """
        _require_tokens(texts)
        return _of_one(self._answer(**_as_batch(texts)))

    def in_parts(self, **texts):
        """Yields the outputs while they grow, if the model writes; the last are those of a call."""
        in_parts = getattr(self._owner, "in_parts", None)
        if in_parts is None:  # of an export, too
            yield self(**texts)
            return
        _require_tokens(texts)
        yield from map(_of_one, in_parts(**_as_batch(texts)))


def _require_tokens(texts):
    for name, text in texts.items():
        for each in text if isinstance(text, list) else [text or ""]:
            if next(basic_tokens(each), None) is None:
                what = _CALLED.get(name, f"the {name}")
                raise UserError(f"{what} holds no token; write something there")


def _as_batch(texts):
    return {name: tf.constant([text]) for name, text in texts.items()}


def _of_one(outputs):
    return {name: plain(values[0]) for name, values in outputs.items()}


def as_graphs(functions):
    """Returns dict of name to `tf.function`, from a dict of name to (function, input specs)."""
    return {n: tf.function(f, specs, autograph=False) for n, (f, specs) in functions.items()}


def plain(tensor):
    """Returns a tensor's value as Python's own types, its strings as str."""
    value = tensor.numpy()
    return _decoded(value if isinstance(value, bytes) else value.tolist())


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value
