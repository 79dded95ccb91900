"""Writes texts for one source."""

import dataclasses

from nezha_tf.data.rows import Row
from nezha_tf.generation.sources import Packing
from nezha_tf.generation.writing import TargetWriter
from nezha_tf.generation.writing_format import format_of
from nezha_tf.serving.predictor import Predictor


class Writer(Predictor):
    """Returns a list of (text, score) for a source, best first."""

    ability = "seq2seq"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        form = format_of(folder.task, folder.tokenizer)
        options = dataclasses.replace(form.options, num_return_sequences=_hypotheses(folder.task))
        self._packing = Packing(folder.tokenizer, form.source)
        # Compiling with XLA would take too long for a page.
        self._write = TargetWriter(
            model, folder.tokenizer, form._replace(options=options), 1, seed=1, jit_compile=False
        )

    def __call__(self, source):
        """Raises a `UserError` if the source has no tokens or does not fit into the model."""
        self._ids(source, "the text")
        rows = [Row({"src": source}, "", 1)]
        (hypotheses,) = self._write(rows, self._packing.pack(rows))
        return [(hypothesis.text, hypothesis.score) for hypothesis in hypotheses]


def _hypotheses(task):
    """Returns the number of texts to show: all that the search finds anyway."""
    return {"beam": task["beam_size"], "greedy": 1}.get(
        task["decoding"], task["num_return_sequences"]
    )
