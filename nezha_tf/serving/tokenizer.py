"""Texts to a model's inputs and back, with the numbers of training and of serving."""

import functools
import numbers
import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from nezha_tf.checkpoints.folder import open_folder
from nezha_tf.serving.any_model import MAX_SEQ_LENGTH, length_of
from nezha_tf.serving.text_reader import TextReader, inputs_of
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.packing import text_packing
from nezha_tf.text.tokenization import FullTokenizer
from nezha_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from nezha_tf.util.errors import UserError

LONGEST, MAX_LENGTH = "longest", "max_length"


class Tokenizer(FullTokenizer):
    """A `FullTokenizer` that also makes a model's inputs of texts, and texts of ids.

    Attributes:
      max_length: the most tokens of a text or pair, special ones included, where a call says none.
      pad_id, unk_id, cls_id, sep_id, mask_id: the ids of the special tokens.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike[str] | None = None,
        do_lower_case: bool = True,
        vocabulary: Vocabulary | None = None,
        max_length: int = MAX_SEQ_LENGTH,
    ):
        """The first three arguments, and errors, are those of `FullTokenizer`."""
        super().__init__(vocab_file, do_lower_case, vocabulary)
        self.max_length = max_length
        ids = self.vocabulary.ids_of(SPECIAL_TOKENS)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids

    @classmethod
    def from_preset(cls, preset: str | os.PathLike[str]) -> "Tokenizer":
        """Opens the tokenizer of a model; `max_length` is what the model was trained for.

        Args:
          preset: a folder, "mini", a name such as "hf:OWNER/NAME", or what else `open_folder`
            takes; errors are also those of `open_folder`.
        """
        folder = open_folder(preset)
        tokenizer = folder.tokenizer
        return cls(None, tokenizer.do_lower_case, tokenizer.vocabulary, length_of(folder))

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.vocabulary)

    def __call__(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        max_length: int | None = None,
        padding: str = LONGEST,
    ) -> dict[str, np.ndarray]:
        """Returns a model's inputs for texts: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

        Of a pair that is too long, the longer text loses its last token again and again
        (`_truncate_seq_pair` of BERT's run_classifier.py).

        Args:
          texts: B str, or one str, a batch of one.
          pairs: the second text of each.
          max_length: the most tokens, special ones included; None: the attribute.
          padding: "longest": T is the length of the longest text of the batch; "max_length": T is
            that number.

        Returns:
          dict of int32 arrays [B, T]: `input_ids`, 0 after the last token; `input_mask`, 1 for
          tokens, else 0; `segment_ids`, 1 from the first token of a second text on, else 0.

        Raises:
          UserError: an argument is wrong: it says which one, and what to do.
        """
        sides = [texts_of(texts, "texts")]
        if pairs is not None:
            sides.append(texts_of(pairs, "pairs"))
            check_pairs(*map(len, sides))
        length = self.max_length if max_length is None else max_length
        check_form(length, padding, is_pair=pairs is not None)
        _require_unforked()
        function = _graph_of(self.reader, len(sides), int(length), padding)
        inputs = function(*(tf.constant(side, tf.string) for side in sides))
        return {name: values.numpy() for name, values in inputs.items()}

    def decode(self, ids: Any) -> str | list:
        """Returns the text of ids [T], or a list of the texts of ids [B, T].

        The ids are integers in lists, or an array or tensor of them. Special tokens are left out;
        spaces are those of `detokenize`. An id that is in no vocabulary of this size is a
        `UserError`.
        """
        if hasattr(ids, "shape"):
            ids = keras.ops.convert_to_numpy(ids)
            if ids.ndim != 1:
                return [self.decode(row) for row in ids]
            ids = ids.tolist()
        elif not isinstance(ids, Iterable):
            ids = [ids]
        if any(isinstance(row, Iterable) for row in ids):
            return [self.decode(row) for row in ids]
        for index in ids:
            if not isinstance(index, numbers.Integral) or not 0 <= index < self.vocab_size:
                raise UserError(
                    f"{index!r} is no id: give whole numbers from 0 to {self.vocab_size - 1}"
                )
        return detokenize(self.convert_ids_to_tokens(ids))

    @functools.cached_property
    def reader(self):
        """Its `TextReader`, which does the same in the graph."""
        with tf.init_scope():  # what it holds would otherwise belong to a graph, where in one
            return TextReader(self)

    def __reduce__(self):
        # What belongs to a graph can neither be copied nor go to another process.
        return type(self), (None, self.do_lower_case, self.vocabulary, self.max_length)


def inputs_of_strings(reader, sides, max_length, padding):
    """Returns the dict of `Tokenizer`, of tensors.

    Args:
      reader: `TextReader`.
      sides: list of the texts, and of their pairs if there are any, string [B].
      max_length, padding: as `check_form` lets them pass.
    """
    packing = text_packing(reader.vocabulary, max_length, is_pair=len(sides) == 2)
    packed = packing(*map(reader.ids, sides))
    least = packing.num_fixed if padding == LONGEST else max_length
    return inputs_of(packed.ids, packed.segment_ids, least)


@functools.lru_cache(maxsize=16)
def _graph_of(reader, num_sides, max_length, padding):
    """Returns `inputs_of_strings` as a graph, which is many times as fast for a few texts."""
    specs = [tf.TensorSpec([None], tf.string)] * num_sides

    def function(*sides):
        with tf.device("/cpu:0"):  # there are no strings elsewhere
            return inputs_of_strings(reader, sides, max_length, padding)

    return tf.function(function, specs, autograph=False)


@functools.cache
def _first_process():
    """Returns the process that first computed here; what is forked from it has the same answer."""
    return os.getpid()


def _require_unforked():
    """Raises a `UserError` in a forked process, where TensorFlow would wait for ever."""
    if _first_process() != os.getpid():
        raise UserError(
            "a Tokenizer that has been called works in no process that is forked afterwards, as "
            "TensorFlow does not: call it in this one (num_workers=0), or in spawned ones "
            '(multiprocessing_context="spawn")'
        )


def texts_of(texts, name):
    """Returns texts as a list of str; `UserError`: they are something else, or no Unicode."""
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, bytes | dict) or not isinstance(texts, Iterable):
        raise UserError(f"{name} is {type(texts).__name__}: give a str, or a list of str")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise UserError(
                f"{name}[{index}] is {type(text).__name__}, not str: leave such rows out, or make "
                "them str"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{name}[{index}] has half a character at {error.start} (a surrogate): decode its "
                "bytes as UTF-8"
            ) from error
    return texts


def check_pairs(num_texts, num_pairs):
    """Raises a `UserError` if there are not as many second texts as texts."""
    if num_texts != num_pairs:
        raise UserError(
            f"texts are {num_texts}, but pairs {num_pairs}: give each text its second one"
        )


def check_form(max_length, padding, is_pair):
    """Raises a `UserError` if there is no such padding, or no room for a token of each text."""
    if padding not in (LONGEST, MAX_LENGTH):
        raise UserError(f"padding={padding!r}: give {LONGEST!r} or {MAX_LENGTH!r}")
    least = 5 if is_pair else 3
    if not isinstance(max_length, numbers.Integral) or max_length < least:
        what = "of each of the two texts beside three" if is_pair else "of the text beside two"
        raise UserError(
            f"max_length={max_length!r}: give a whole number of at least {least}, for a token "
            f"{what} special ones"
        )
