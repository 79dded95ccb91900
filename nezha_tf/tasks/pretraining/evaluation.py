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
        return super().write(step, {**results, **self.figures(self.counts(), results)})

    def counts(self):
        """Returns how often each token is to be predicted: dict of `LossTerm` to int64 [n]."""
        terms = [term for term in self._objective.terms if term.predicts_tokens]
        counts = dict.fromkeys(terms, np.zeros(1, np.int64))
        for batch in self.batches():
            for term in terms:
                is_used = self._objective.weights(term, batch).numpy() > 0
                counts[term] = _added(counts[term], term.labels(batch).numpy()[is_used])
        return counts

    def figures(self, counts, results):
        """Returns the measures, a dict of name to float.

        Args:
          counts: as of `counts`, or shares of the tokens.
          results: the losses.
        """
        figures = {}
        for term, found in counts.items():
            total = found.sum()
            figures[f"{term.name}_majority_accuracy"] = float(found.max() / (total or 1))
            if term.is_language_model:
                loss = results[f"{term.name}_loss"]
                figures[f"{term.name}_perplexity"] = float(np.exp(loss))
                characters = 0 if self._lengths is None else found @ self._lengths[: len(found)]
                if characters:
                    bits = loss * total / math.log(2)
                    figures[f"{term.name}_bits_per_character"] = float(bits / characters)
        return figures


class PartsEvaluation:
    """The evaluation of several parts of the held-out examples, each as if it were alone.

    A result is the mean of the parts by their shares, and NAME/PART is that of a part. Of what is
    measured for each objective of a mixture (its name has a slash already) there is the mean alone.
    """

    def __init__(self, evaluations, shares):
        """Args:
        evaluations: dict of the parts' names to `PretrainingEvaluation`s of one model.
        shares: the share of each part in the means, which add up to 1.
        """
        self._evaluations = evaluations
        self._shares = shares
        self._first, *others = evaluations.values()
        for evaluation in others:
            evaluation.take_over(self._first)  # They have one step, which is traced once.

    @property
    def is_traced(self):
        """As of `Evaluation`."""
        return self._first.is_traced

    def __call__(self, moving_average=None):
        """As of `Evaluation`."""
        found = [evaluation(moving_average) for evaluation in self._evaluations.values()]
        return {**self._mean(found), **self._named(found)}

    def write(self, step, results):
        """As of `Evaluation`."""
        of_parts = [self._of_part(name, results) for name in self._evaluations]
        counts = [evaluation.counts() for evaluation in self._evaluations.values()]
        figures = [
            evaluation.figures(*each)
            for evaluation, *each in zip(self._evaluations.values(), counts, of_parts, strict=True)
        ]
        means = self._first.figures(self._mean_counts(counts), results)
        return Evaluation.write(self._first, step, {**results, **means, **self._named(figures)})

    def _mean(self, found):
        """Returns the mean of each result, given those of all parts."""
        return {
            name: sum(share * each[name] for share, each in zip(self._shares, found, strict=True))
            for name in found[0]
        }

    def _named(self, found):
        return {
            f"{name}/{part}": value
            for part, each in zip(self._evaluations, found, strict=True)
            for name, value in each.items()
            if "/" not in name
        }

    def _of_part(self, part, results):
        return {
            name.removesuffix(f"/{part}"): value
            for name, value in results.items()
            if name.endswith(f"/{part}")
        }

    def _mean_counts(self, counts):
        """Returns the share of each token, dict of `LossTerm` to float64 [n]."""
        found = {}
        for term in counts[0]:
            most = max(len(each[term]) for each in counts)
            found[term] = sum(
                share * np.pad(each[term], (0, most - len(each[term]))) / max(each[term].sum(), 1)
                for share, each in zip(self._shares, counts, strict=True)
            )
        return found


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
