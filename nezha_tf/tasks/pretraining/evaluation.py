"""The evaluation of pretraining: beside losses, what they are compared with."""

import math

import numpy as np

from nezha_tf.text.detokenization import is_dropped
from nezha_tf.text.vocabulary import UNK
from nezha_tf.training.evaluation import Evaluation


class PretrainingEvaluation(Evaluation):
    """An `Evaluation` that also reports the accuracy of guessing, and measures of language models.

    For each kind of prediction of tokens there is NAME_majority_accuracy, the accuracy of always
    guessing the most frequent token. Where each next token is predicted, there are also
    NAME_perplexity, and NAME_bits_per_character if the vocabulary is known. The latter compares
    models with different vocabularies.
    """

    def __init__(self, strategy, model, objective, *arguments, vocabulary=None):
        """Takes what `Evaluation` does, and the `Vocabulary` of the examples."""
        super().__init__(strategy, model, objective, *arguments)
        self._objective = objective
        self._lengths = None if vocabulary is None else lengths_of(vocabulary)

    def write(self, step, results):
        terms = [term for term in self._objective.terms if term.predicts_tokens]
        counts = dict.fromkeys(terms, np.zeros(1, np.int64))
        for batch in self.batches():
            for term in terms:
                is_used = self._objective.weights(term, batch).numpy() > 0
                counts[term] = _added(counts[term], term.labels(batch).numpy()[is_used])
        for term, found in counts.items():
            results = {**results, **self._figures(term, found, results)}
        return super().write(step, results)

    def _figures(self, term, counts, results):
        """Returns the figures of a term whose label n occurs `counts[n]` times."""
        total = counts.sum()
        figures = {f"{term.name}_majority_accuracy": float(counts.max() / max(total, 1))}
        if term.is_language_model:
            loss = results[f"{term.name}_loss"]
            figures[f"{term.name}_perplexity"] = float(np.exp(loss))
            characters = 0 if self._lengths is None else counts @ self._lengths[: len(counts)]
            if characters:
                bits = loss * total / math.log(2)
                figures[f"{term.name}_bits_per_character"] = float(bits / characters)
        return figures


def lengths_of(vocabulary):
    """Returns the number of characters of each token, int64 [V].

    [UNK] has one, as it stands for one at least; [SEP] and sentinels are no text and have none.
    """
    return np.array(
        [
            0 if is_dropped(token) else 1 if token == UNK else len(token.removeprefix("##"))
            for token in vocabulary.tokens
        ]
    )


def _added(counts, labels):
    """Returns counts of labels with those of `labels`, int [n], added."""
    found = np.bincount(labels, minlength=len(counts))
    return found + np.pad(counts, (0, len(found) - len(counts)))
