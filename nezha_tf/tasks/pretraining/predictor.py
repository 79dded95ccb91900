"""What a pretrained model writes, for the demo page."""

import numpy as np

from nezha_tf.data.rows import Row
from nezha_tf.errors import UserError
from nezha_tf.pretraining_objectives.uses import uses_of
from nezha_tf.tasks.pretraining.writing import SEARCHES, form_of
from nezha_tf.tasks.seq2seq.packing import Pairs
from nezha_tf.tasks.seq2seq.writing import TargetWriter

# Texts that are shown.
SHOWN = 3


class PretrainedWriter:
    """Gives a list of (text, score) for a source, or of what goes on from a prompt; best first."""

    def __init__(self, folder, model, ability):
        """Args:
        folder: `ModelFolder` of a pretraining run.
        model: of `folder.make_model`.
        ability: "left_to_right" or "seq2seq".
        """
        form = form_of(folder, ability, SHOWN)
        self._side, self._tokenizer = form.side, folder.tokenizer
        # XLA would take longer to compile than a page is looked at.
        self._write = TargetWriter(
            model, folder.tokenizer, *form[1:], batch_size=1, seed=1, jit_compile=False
        )

    def __call__(self, text):
        """Raises `UserError` where the text holds no piece."""
        vocabulary = self._tokenizer.vocabulary
        ids = vocabulary.ids_of(self._tokenizer.tokenize(text or ""))
        if not ids:
            raise UserError("the text holds no piece; write something there")
        end = [vocabulary.sep_id] if self._side.special_pieces == 2 else []
        packed = np.array([vocabulary.cls_id, *self._side.cut(ids), *end], np.int32)
        pairs = Pairs([packed], [len(packed)], {})
        (hypotheses,) = self._write([Row({"src": text}, "", 1)], pairs)
        return [(hypothesis.text, hypothesis.score) for hypothesis in hypotheses]


def writers_of(folder, model):
    """Returns dict of ability to `PretrainedWriter`: the ways in which a model was trained to."""
    abilities = [ability for ability in uses_of(folder.task) if ability in SEARCHES]
    return {ability: PretrainedWriter(folder, model, ability) for ability in abilities}
