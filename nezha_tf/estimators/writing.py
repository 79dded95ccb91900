"""Classes that use a model as it is: they write texts, fill blanks and make vectors."""

import functools
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from nezha_tf.data.rows import Row
from nezha_tf.estimators.base import Estimator, OpenedModel, checked, rows_of
from nezha_tf.generation.model import load_model
from nezha_tf.generation.target_format import MODES
from nezha_tf.modeling import positions
from nezha_tf.modeling.encoder import NezhaEncoder
from nezha_tf.objectives.uses import uses_of
from nezha_tf.serving.export import OF_PRETRAINED, serving_of
from nezha_tf.serving.signature import DEFAULT, plain
from nezha_tf.tasks.sentence_vectors import vectors
from nezha_tf.tasks.sentence_vectors.extract import DEFAULTS, LAST_LAYER
from nezha_tf.tasks.sentence_vectors.extract_settings import POOLINGS
from nezha_tf.tasks.seq2seq.settings import Seq2SeqSettings
from nezha_tf.tasks.seq2seq.task import Seq2Seq
from nezha_tf.text.vocabulary import MASK
from nezha_tf.training.run import run
from nezha_tf.util.errors import UserError


class TextGenerator(Estimator):
    """Writes texts: continues them, or writes the target of a source, as the model was trained.

    A pretrained model writes if one of its objectives taught it to (generate_text.py); `fit` is
    run_seq2seq.py for texts in memory.
    """

    task_names = ("seq2seq",)
    settings_class = Seq2SeqSettings
    run = staticmethod(run)
    _make_task = staticmethod(Seq2Seq)

    def fit(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        validation_data: tuple | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        verbose: bool = True,
        **settings: Any,
    ) -> Self:
        """Trains to write the targets; `validation_data` are (sources, targets).

        See `TextClassifier.fit`; here `num_train_steps=...` says how long.
        """
        rows = _pairs(sources, targets)
        held_out = None if validation_data is None else _pairs(*validation_data)
        return self._fit(rows, held_out, output_dir, verbose, settings)

    def generate(self, texts: str | Sequence[str], seed: int = 0, **options: Any) -> Any:
        """Writes for a text, or for each of several.

        Args:
          texts: a str, or a list of str.
          seed: that of the first text for `method="sample"`; each next one has the next number.
          **options: what differs from the preset's search: fields of `GenerationOptions`, such as
            `method="sample"`, `top_p=0.9`, `max_length=32` or `num_return_sequences=3`.

        Returns:
          The written str; with several `num_return_sequences` a list, best first. For a list of
          texts, a list of these.

        Raises:
          UserError: the model cannot write, or an option is bad.
        """
        given = checked(texts, "texts")
        serving, functions = self._with_options(options)
        function, seeds = functions[DEFAULT], {}
        if "with_seed" in functions:
            function = functions["with_seed"]
            seeds = {"seed": tf.constant((seed + np.arange(len(given))) % 2**31, tf.int32)}
        outputs = function(text=tf.constant(given), **seeds)
        found = plain(outputs[serving.written])
        if serving.written_count == 1:
            found = [each[0] for each in found]
        return found[0] if isinstance(texts, str) else found

    def _with_options(self, options):
        """Returns (`WritingServing` with other options, its signatures); the last ones are kept."""
        before = self.__dict__.get("_last")
        if before is None or before[0] != (self._path, options):
            serving = self._serving.with_options(**options)
            self._last = before = ((self._path, options), serving, serving.signatures())
        return before[1:]

    @functools.cached_property
    def _serving(self):
        if self.is_trained:
            return serving_of(self._opened)[1]
        uses = [use for use in uses_of(self._opened.task) if use in MODES]
        if not uses:
            raise UserError(
                f"the model in {self._path} has not learned to write: name one that was pretrained "
                "with left_to_right or seq2seq, or call fit()"
            )
        return OF_PRETRAINED[uses[0]](self._opened, self.model)


class MaskFiller(OpenedModel):
    """Finds the likeliest tokens for each [MASK] of a text: fill_mask.py for texts in memory."""

    @functools.cached_property
    def _serving(self):
        return OF_PRETRAINED["fill_mask"](self._opened, self.model)

    def fill(self, texts: str | Sequence[str], top_k: int = 5, batch_size: int = 32) -> list:
        """Returns for each text and each [MASK] in it a list of (token, probability).

        They are the `top_k` likeliest, likeliest first; for a str, those of this text alone. A text
        without a [MASK] is a `UserError`.
        """
        given = checked(texts, "texts")
        for index, text in enumerate(given):
            if MASK not in text:
                raise UserError(f"no {MASK} in texts[{index}]; write one for each token to fill in")
        answers = self._answers(batch_size, text=given)
        found = [
            [
                list(zip(tokens, probabilities, strict=True))[:top_k]
                for tokens, probabilities in zip(
                    answer["candidates"][: answer["num_masks"]],
                    answer["probabilities"][: answer["num_masks"]],
                    strict=True,
                )
            ]
            for answer in answers
        ]
        return found[0] if isinstance(texts, str) else found


class TextEncoder(OpenedModel):
    """Makes vectors of texts: extract_features.py for texts in memory."""

    def encode(
        self,
        texts: str | Sequence[str],
        pooling: str | None = None,
        layers: Sequence[str] | None = None,
        normalize: bool | None = None,
        max_seq_length: int | None = None,
        batch_size: int = 32,
    ) -> np.ndarray:
        """Returns the vectors of texts, float32 [texts, D]; [D] for a str.

        Args:
          texts: a str, or a list of str.
          pooling: "mean" or "max" of the tokens without [CLS] and [SEP], "mean_all" or "max_all"
            with them, "cls", or "pooler"; default: what the preset was trained for, or "mean".
          layers: the layers whose vectors are joined, such as ("-1",), the default, or ("-1",
            "-2"); see --layers of extract_features.py.
          normalize: whether each vector is divided by its length; default: what the preset says
            (a folder of sentence-transformers may), or not.
          max_seq_length: longer texts are cut; default: the preset's, or 128, and no more than the
            model has positions.
          batch_size: texts in a batch.

        Raises:
          UserError: a text has no token, the model has no such layer, or fewer positions than
            `max_seq_length`.
        """
        task, config = self._opened.task, self._opened.config
        pooling = pooling or task.get("pooling", DEFAULTS["pooling"])
        if pooling not in POOLINGS:
            raise UserError(f"pooling={pooling!r}: give one of {', '.join(POOLINGS)}")
        kind = positions.of(config)
        length = task.get("max_seq_length") or DEFAULTS["max_seq_length"]
        length = max_seq_length or min(length, kind.longest(config) or length)
        kind.check_length(config, length, f"max_seq_length={length}")
        has_mix = task.get("layer_mix", False)
        names = layers or ((vectors.MIX,) if has_mix else LAST_LAYER)
        numbers = vectors.layer_numbers(names, config.num_hidden_layers, has_mix)
        given = checked(texts, "texts")
        rows = [Row({"text": text}, "texts", i, "item") for i, text in enumerate(given, 1)]
        normalize = task.get("normalize", False) if normalize is None else normalize
        given_step = (tuple(numbers), pooling, normalize)
        if given_step not in self._steps:  # Each is traced once for all calls.
            self._steps[given_step] = vectors.make_step(self._encoder, *given_step)
        step = self._steps[given_step]
        found = np.zeros((len(rows), config.hidden_size * len(numbers)), np.float32)
        if rows:
            packed = vectors.pack(rows, self.tokenizer, length)
            for index, vector in vectors.computed(step, packed, batch_size):
                found[index] = vector
        return found[0] if isinstance(texts, str) else found

    @functools.cached_property
    def _steps(self):
        return {}

    @functools.cached_property
    def _encoder(self):
        return load_model(self._opened, NezhaEncoder)[0]


def _pairs(sources, targets):
    return rows_of(src=checked(sources, "sources"), tgt=checked(targets, "targets"))
