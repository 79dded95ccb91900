"""What every export has in common: named signatures, assets, a README, a folder written whole."""

import abc
import functools
import os
import tempfile

import tensorflow as tf

from nezha_tf import files
from nezha_tf.errors import UserError, first_line
from nezha_tf.serving.text_reader import TextReader

README = "README.md"


class Serving(tf.Module, abc.ABC):
    """A model and its tokenizer, as functions of raw text.

    A subclass says what the functions are, and what a reader has to know of them.

    Attributes:
      about: a paragraph on what it does, for the README.
      example: arguments of the default signature as they stand in Python, for the README.
      meanings: dict of the name of an input or output to what it is, in words.
    """

    about: str
    example: str
    meanings: dict

    def __init__(self, model, tokenizer):
        """Args:
        model: a Keras model in float32. Its weights are saved, its layers only as graphs.
        tokenizer: the model's `FullTokenizer`.
        """
        super().__init__(name="serving")
        self._weights = [variable.value for variable in model.weights]
        self._model = functools.partial(model, training=False)
        self._reader = TextReader(tokenizer)

    @abc.abstractmethod
    def signatures(self):
        """Returns dict of name to `tf.function` with an input signature, "serving_default" first.

        Each argument's spec has its name; each function returns a dict of name to tensor.
        """

    def assets(self):
        """Returns dict of file name to text: what a reader of the outputs may want to look up."""
        return {"vocab.txt": "".join(f"{piece}\n" for piece in self._reader.vocabulary.pieces)}


def as_graphs(functions):
    """Returns dict of name to `tf.function` of a dict of name to (function, specs)."""
    return {n: tf.function(f, specs, autograph=False) for n, (f, specs) in functions.items()}


def write(serving, folder):
    """Writes a SavedModel, and a README.md beside it; the folder appears whole or not at all.

    Args:
      serving: `Serving`.
      folder: path of a folder that is not there.

    Raises:
      UserError: the folder is there, or cannot be written.
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
    """Returns the README of an export: its use in two lines, its inputs and outputs.

    Args:
      serving: `Serving`.
      name: of the folder.
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
        "It needs nothing but `tensorflow` and `tensorflow-text` of one version, "
        f"{tf.__version__} or later. Outputs are a dict of name to tensor. B, the number of texts, "
        "is free, 0 among it. Texts are UTF-8; what is not becomes U+FFFD as tensorflow's "
        "`unicode_transcode` does it. `assets/` holds the vocabulary and the names that outputs "
        "are of.",
    ]
    for signature, function in signatures.items():
        # None is an argument that this signature lacks.
        inputs = {s.name: s for s in function.structured_input_signature[0] if s is not None}
        lines += ["", f"## `{signature}`", "", "| | | |", "| --- | --- | --- |"]
        lines += _rows(serving, "in", inputs) + _rows(serving, "out", function.structured_outputs)
    return "\n".join(lines) + "\n"


def _rows(serving, direction, specs):
    """Returns the lines of a table on tensors, dict of name to spec."""
    lines = []
    for name, spec in specs.items():
        sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
        meaning = serving.meanings.get(name, "")
        lines.append(f"| {direction}: `{name}` | {spec.dtype.name} [{sizes}] | {meaning} |")
    return lines
