"""Masked LM and next-sentence prediction on held-out examples."""

import json
import os

import numpy as np

from nezha_tf import files
from nezha_tf.objectives.pretraining import MaskedLanguageModel
from nezha_tf.training import loop
from nezha_tf.training.step import make_eval_step


class Evaluation:
    """The held-out examples, and what the model makes of them."""

    def __init__(self, model, reader, batch_size, max_batches, folder):
        """Args:
        model: `NezhaForPreTraining`.
        reader: `ExampleReader` of the held-out examples.
        batch_size: examples in a batch.
        max_batches: bound on the batches of one evaluation.
        folder: where the results go.
        """
        self._eval_step = make_eval_step(model, MaskedLanguageModel())
        self._reader = reader
        self._folder = folder
        self._batches = reader.evaluation_batches(batch_size, max_batches)

    def __call__(self):
        """Returns dict of name to float."""
        return loop.evaluate(self._eval_step, self._reader.guarded(self._batches))

    def write(self, step, results):
        """Writes `eval_results.txt` and `.json`.

        Args:
          step: the step that the weights are of.
          results: what a call returned.

        Returns:
          All that the files hold, dict of name to number.
        """
        results = {"global_step": step, **results, **self._majority()}
        lines = "".join(f"{name} = {value}\n" for name, value in sorted(results.items()))
        text = json.dumps(results, indent=2, sort_keys=True) + "\n"
        for name, content in (("eval_results.txt", lines), ("eval_results.json", text)):
            files.write_text(os.path.join(self._folder, name), content)
        return results

    def _majority(self):
        """Returns the accuracy of always guessing the most frequent of the masked pieces."""
        counts = np.zeros(1, np.int64)
        for batch in self._reader.guarded(self._batches):
            labels = batch["masked_lm_ids"].numpy()[batch["masked_lm_weights"].numpy() > 0]
            found = np.bincount(labels, minlength=len(counts))
            counts = found + np.pad(counts, (0, len(found) - len(counts)))
        return {"masked_lm_majority_accuracy": float(counts.max() / max(counts.sum(), 1))}
