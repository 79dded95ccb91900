"""What all exports have in common: signatures, assets, a README, and how the folder is written."""

import abc
import functools
import os
import re
import tempfile

import tensorflow as tf

from nezha_tf.serving.text_reader import TextReader
from nezha_tf.util import files
from nezha_tf.util.errors import UserError, first_line

README = "README.md"
_OF_PATTERNS = re.compile(r"[*?\[\\]")


class Serving(tf.Module, abc.ABC):
    """A model and its tokenizer, as functions that take raw text.

    A subclass defines the functions, and describes them for the README of the export.

    Attributes:
      about: a paragraph that says what the export does.
      example: arguments of the default signature, written as in Python.
      meanings: dict of the names of inputs and outputs to their descriptions.
    """

    about: str
    example: str
    meanings: dict

    def __init__(self, model, tokenizer):
        """Args:
        model: a Keras model in float32. Its weights are saved; its layers become graphs.
        tokenizer: the model's `FullTokenizer`.
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

    def assets(self):
        """Returns dict of file name to content: files in which users look up the outputs."""
        return {"vocab.txt": "".join(f"{token}\n" for token in self._reader.vocabulary.tokens)}


def as_graphs(functions):
    """Returns dict of name to `tf.function`, from a dict of name to (function, input specs)."""
    return {n: tf.function(f, specs, autograph=False) for n, (f, specs) in functions.items()}


def require_loadable(path, flag):
    """Raises a `UserError` if TensorFlow would take the path of a SavedModel for a pattern.

    It finds no weights then, or those of another folder.

    Args:
      path: the folder.
      flag: the flag that names it.
    """
    found = _OF_PATTERNS.search(path)
    if found:
        raise UserError(
            f"--{flag}={path}: TensorFlow takes a path with {found[0]} for a pattern and does not "
            "find the weights of a SavedModel there; name a folder without this character"
        )


def write(serving, folder):
    """Writes a SavedModel and its README.md; after an error there is no folder.

    Args:
      serving: `Serving`.
      folder: path of the folder to make; it must not exist.

    Raises:
      UserError: the folder exists, or cannot be written.
    """
    signatures = {n: f.get_concrete_function() for n, f in serving.signatures().items()}
    with files.whole_folder(folder) as temporary, tempfile.TemporaryDirectory() as scratch:
        paths = []
        for name, text in serving.assets().items():
            paths.append(os.path.join(scratch, name))
            files.write_text(paths[-1], text)
        serving.asset_files = [tf.saved_model.Asset(path) for path in paths]
        try:
            tf.saved_model.save(serving, temporary, signatures)
        except tf.errors.OpError as error:
            raise UserError(f"cannot write {folder}: {first_line(error)}") from error
        text = readme_text(serving, os.path.basename(os.path.abspath(folder)), signatures)
        files.write_text(os.path.join(temporary, README), text)


def readme_text(serving, name, signatures):
    """Returns the README of an export: how to use it, its inputs and its outputs.

    Args:
      serving: `Serving`.
      name: name of the folder.
      signatures: dict of name to concrete function.
    """
    lines = [
        f"# {name}",
        "",
        serving.about,
        "",
        "```python",
        "import tensorflow as tf, tensorflow_text",
        "",
        f'model = tf.saved_model.load("{name}")',
        f'outputs = model.signatures["serving_default"]({serving.example})',
        "```",
        "",
        "It only needs `tensorflow` and `tensorflow-text`, both of the same version, "
        f"{tf.__version__} or later. Outputs are a dict of name to tensor. The number of texts may "
        "be any number, also 0. Texts are UTF-8; invalid bytes become U+FFFD, as in tensorflow's "
        "`unicode_transcode`. `assets/` holds the vocabulary and the names of the labels, if there "
        "are any.",
    ]
    for signature, function in signatures.items():
        # None stands for an argument that this signature does not have.
        inputs = {s.name: s for s in function.structured_input_signature[0] if s is not None}
        lines += ["", f"## `{signature}`", "", "| | | |", "| --- | --- | --- |"]
        lines += _rows(serving, "in", inputs) + _rows(serving, "out", function.structured_outputs)
    return "\n".join(lines) + "\n"


def _rows(serving, direction, specs):
    """Returns the lines of a table of tensors.

    Args:
      serving: `Serving`.
      direction: "in" or "out".
      specs: dict of name to spec.
    """
    lines = []
    for name, spec in specs.items():
        sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
        meaning = serving.meanings.get(name, "")
        lines.append(f"| {direction}: `{name}` | {spec.dtype.name} [{sizes}] | {meaning} |")
    return lines
