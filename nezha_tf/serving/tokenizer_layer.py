"""A Keras layer that makes a model's inputs of strings."""

from typing import Any

import keras
import tensorflow as tf

from nezha_tf.serving.text_reader import MODEL_INPUTS
from nezha_tf.serving.tokenizer import (
    MAX_LENGTH,
    Tokenizer,
    check_form,
    inputs_of_strings,
    texts_of,
)
from nezha_tf.text.vocabulary import Vocabulary
from nezha_tf.util.errors import UserError


@keras.saving.register_keras_serializable("nezha_tf")
class TokenizerLayer(keras.layers.Layer):
    """Makes the inputs of `Tokenizer` of strings, in a model, in `tf.data` or of str.

    It is called with texts, and with their pairs if there are any: string tensors [B], lists of B
    str, or scalars. It returns the dict of `Tokenizer`, int32 [B, T], or [T] of scalars. In a model
    its inputs are `keras.Input((), dtype="string")`. Its configuration contains the vocabulary, so
    a saved model needs no other file; what opens an exported one imports `tensorflow_text`.

    It needs Keras's TensorFlow backend.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        padding: str = "longest",
        **kwargs: Any,
    ):
        """`max_length` and `padding` are those of a call of `Tokenizer`.

        Before `batch` in a pipeline take "max_length": `batch` wants texts of one length. Raises a
        `UserError` for wrong arguments, and on another backend.
        """
        backend = keras.backend.backend()
        if backend != "tensorflow":
            raise UserError(
                f"{type(self).__name__} needs KERAS_BACKEND=tensorflow, as {backend} has no "
                "strings: give the model what nezha_tf.Tokenizer makes of them"
            )
        if not isinstance(tokenizer, Tokenizer):
            raise UserError(
                f"tokenizer is a {type(tokenizer).__name__}: give a nezha_tf.Tokenizer, such as "
                'Tokenizer.from_preset("mini")'
            )
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA has no strings
        self.max_length = tokenizer.max_length if max_length is None else max_length
        self.padding = padding
        check_form(self.max_length, padding, is_pair=False)
        self._tokenizer, self._reader = tokenizer, tokenizer.reader
        self.built = True

    def __call__(self, texts, pairs=None, **kwargs):
        # Here and not in `call`, where Keras puts lines of its own around an error.
        sides = [_strings(texts, "texts")]
        if pairs is not None:
            sides.append(_strings(pairs, "pairs"))
            first, second = (tf.TensorShape(side.shape) for side in sides)
            if not first.is_compatible_with(second):
                raise UserError(
                    f"texts have the shape {first}, but pairs {second}: give each text its second "
                    "one"
                )
        check_form(self.max_length, self.padding, is_pair=pairs is not None)
        return super().__call__(*sides, **kwargs)

    def call(self, texts, pairs=None):
        """Returns the dict of `Tokenizer` for string tensors."""
        sides = [texts] if pairs is None else [texts, pairs]
        is_single = texts.shape.rank == 0
        sides = [side[None] if is_single else side for side in sides]
        inputs = inputs_of_strings(self._reader, sides, self.max_length, self.padding)
        inputs = {n: tf.ensure_shape(v, [None, self._length]) for n, v in inputs.items()}
        return {n: v[0] for n, v in inputs.items()} if is_single else inputs

    def compute_output_spec(self, texts, pairs=None):
        """Returns the dict of `KerasTensor`s that a call returns for such `KerasTensor`s."""
        shape = (*texts.shape, self._length)
        return {name: keras.KerasTensor(shape, dtype="int32") for name in MODEL_INPUTS}

    @property
    def _length(self):
        """T, or None if it depends on the texts."""
        return self.max_length if self.padding == MAX_LENGTH else None

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary": self._tokenizer.vocabulary.tokens,
            "do_lower_case": self._tokenizer.do_lower_case,
            "max_length": self.max_length,
            "padding": self.padding,
        }

    @classmethod
    def from_config(cls, config):
        vocabulary = Vocabulary(config["vocabulary"])
        tokenizer = Tokenizer(None, config["do_lower_case"], vocabulary)
        own = {n: v for n, v in config.items() if n not in ("vocabulary", "do_lower_case")}
        return cls(tokenizer, **own)


def _strings(texts, name):
    """Returns texts as a string tensor, [B] or []; `UserError`: they are something else."""
    if not (tf.is_tensor(texts) or keras.backend.is_keras_tensor(texts)):
        checked = texts_of(texts, name)
        return tf.constant(checked[0] if isinstance(texts, str) else checked, tf.string)
    dtype = keras.backend.standardize_dtype(texts.dtype)
    if dtype != "string" or len(texts.shape) > 1:
        raise UserError(
            f"{name} are a tensor of {dtype} with shape {tuple(texts.shape)}: give strings [B]; in "
            'a model, keras.Input((), dtype="string")'
        )
    return texts
