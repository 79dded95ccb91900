"""Writes targets for raw sources: generates tokens and converts them to text."""

import json
from typing import NamedTuple

import numpy as np

from nezha_tf.generation.generator import Generator
from nezha_tf.generation.sources import pad_left, rounded_up
from nezha_tf.text.detokenization import detokenize
from nezha_tf.util import console, files


class Hypothesis(NamedTuple):
    """A written text, its score, and its log-probability without the length penalty."""

    text: str
    score: float
    log_prob: float


class TargetWriter:
    """Writes the targets of sources with a model's current weights."""

    def __init__(self, model, tokenizer, form, batch_size, seed, jit_compile):
        """Args:
        model: a `NezhaForMaskedLM`.
        tokenizer: the `FullTokenizer` of its texts.
        form: its `WritingFormat`.
        batch_size: number of sources in a batch.
        seed: seed of sampling; a row's seed is this plus its number, so batches do not matter.
        jit_compile: see `Generator`.
        """
        self._generator = Generator(
            model, tokenizer.vocabulary, form.target_format, form.options, jit_compile
        )
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._seed = seed

    def __call__(self, rows, pairs):
        """Writes targets.

        Args:
          rows: list of `data.rows.Row`.
          pairs: their `sources.Pairs`.

        Returns:
          A list with, for each row, a list of `Hypothesis`, best first.
        """
        sources = [source for source, _ in pairs.sides()]
        longest = rounded_up(max(map(len, sources)))
        firsts = range(0, len(sources), self._batch_size)
        written = []
        for first in console.progress(firsts, desc="writing", unit="batch"):
            batch = sources[first : first + self._batch_size]
            # Every batch is filled up, so that only one shape is compiled.
            full = batch + batch[:1] * (self._batch_size - len(batch))
            generated = self._generator(*pad_left(full, longest), seed=self._seed + first)
            generated = [np.array(values)[: len(batch)] for values in generated]
            for row, *hypotheses in zip(rows[first : first + len(batch)], *generated, strict=True):
                written.append(self._texts(row.values["src"], *hypotheses))
        return written

    def _texts(self, source, ids, lengths, scores, log_probs):
        """Returns the hypotheses of one source: ids [R, T], the rest [R]."""
        vocabulary = self._tokenizer.vocabulary
        texts = []
        for tokens, length, score, log_prob in zip(ids, lengths, scores, log_probs, strict=True):
            if length:
                tokens = vocabulary.tokens_of(tokens[:length].tolist())
                text = detokenize(tokens, source, self._tokenizer)
                texts.append(Hypothesis(text, float(score), float(log_prob)))
        return texts


def write_predictions(path, rows, written):
    """Writes JSON lines: a row's line, source and target, the best text, its score, and the others.

    Args:
      path: the file.
      rows: list of `data.rows.Row`.
      written: the result of `TargetWriter` for them.
    """
    lines = []
    for row, hypotheses in zip(rows, written, strict=True):
        best = hypotheses[0]
        line = {"line": row.line, **row.values, "prediction": best.text, "score": best.score}
        if len(hypotheses) > 1:
            line["hypotheses"] = [hypothesis._asdict() for hypothesis in hypotheses]
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    files.write_text(path, "".join(lines))
