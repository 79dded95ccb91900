"""Writes texts for one source."""

from nezha_tf.data.rows import Row
from nezha_tf.generation.target_format import TargetFormat
from nezha_tf.serving.predictor import Predictor
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.tasks.seq2seq.writing import TargetWriter, options_of


class Writer(Predictor):
    """Returns a list of (text, score) for a source, best first."""

    ability = "seq2seq"

    def __init__(self, folder, model):
        super().__init__(folder, model)
        task, tokenizer = folder.task, folder.tokenizer
        lengths = (task["max_source_length"], task["max_target_length"], task["truncate_source"])
        self._packing = Packing(tokenizer, *lengths)
        target_format = TargetFormat(target_prediction=task["target_prediction"])
        options = options_of({**task, "num_return_sequences": _hypotheses(task)}, tokenizer)
        # Compiling with XLA would take too long for a page.
        self._write = TargetWriter(
            model, tokenizer, target_format, options, 1, seed=1, jit_compile=False
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
