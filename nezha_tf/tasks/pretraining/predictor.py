"""Writes texts with a pretrained model, for the demo page."""

import numpy as np

from nezha_tf.data.rows import Row
from nezha_tf.generation.sources import Pairs
from nezha_tf.generation.target_format import MODES
from nezha_tf.generation.writing import TargetWriter
from nezha_tf.generation.writing_format import pretrained_format
from nezha_tf.objectives.uses import uses_of
from nezha_tf.util.errors import UserError

# Number of texts to show.
SHOWN = 3


class PretrainedWriter:
    """Returns a list of (text, score) for a source or a prompt, best first."""

    def __init__(self, folder, model, ability):
        """Args:
        folder: `ModelFolder` of a pretraining run.
        model: the model of `folder.make_model`.
        ability: "left_to_right" or "seq2seq".
        """
        form = pretrained_format(folder, ability, SHOWN)
        self._side, self._tokenizer = form.source, folder.tokenizer
        # Compiling with XLA would take too long for a page.
        self._write = TargetWriter(
            model, folder.tokenizer, form, batch_size=1, seed=1, jit_compile=False
        )

    def __call__(self, text):
        """Raises a `UserError` if the text has no tokens."""
        vocabulary = self._tokenizer.vocabulary
        ids = vocabulary.ids_of(self._tokenizer.tokenize(text or ""))
        if not ids:
            raise UserError("the text has no tokens; write something")
        end = [vocabulary.sep_id] if self._side.special_tokens == 2 else []
        packed = np.array([vocabulary.cls_id, *self._side.cut(ids), *end], np.int32)
        pairs = Pairs([packed], [len(packed)], {})
        (hypotheses,) = self._write([Row({"src": text}, "", 1)], pairs)
        return [(hypothesis.text, hypothesis.score) for hypothesis in hypotheses]


def writers_of(folder, model):
    """Returns a dict of ability to `PretrainedWriter`, for the abilities of the model."""
    abilities = [ability for ability in uses_of(folder.task) if ability in MODES]
    return {ability: PretrainedWriter(folder, model, ability) for ability in abilities}
