"""Writing targets for raw sources: generation, and back from pieces to text."""

import json
from typing import NamedTuple

import numpy as np

from nezha_tf import console, files
from nezha_tf.errors import UserError
from nezha_tf.generation.generator import Generator
from nezha_tf.generation.options import GenerationOptions
from nezha_tf.generation.sources import pad_left, rounded_up
from nezha_tf.text.detokenization import detokenize
from nezha_tf.text.vocabulary import CLS, MASK, PAD

# Never written; [UNK] may be, as the source often tells what it stands for.
BANNED_PIECES = (PAD, CLS, MASK)


class Hypothesis(NamedTuple):
    """A text that was written: its score, and its log-probability before the length penalty."""

    text: str
    score: float
    log_prob: float


class TargetWriter:
    """Writes the targets of sources with the present weights of a model."""

    def __init__(self, model, tokenizer, target_format, options, batch_size, seed, jit_compile):
        """Args:
        model: a `NezhaForMaskedLM`.
        tokenizer: the `FullTokenizer` of its texts.
        target_format, options, jit_compile: as for `Generator`.
        batch_size: sources that are written for at a time.
        seed: of sampling; each row adds its number, so that its batch does not matter.
        """
        self._generator = Generator(
            model, tokenizer.vocabulary, target_format, options, jit_compile
        )
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._seed = seed

    def __call__(self, rows, pairs):
        """Writes targets.

        Args:
          rows: list of `data.rows.Row`.
          pairs: their `packing.Pairs`.

        Returns:
          For each row a list of `Hypothesis`, best first, in the rows' order.
        """
        sources = [
            ids[:end].tolist() for ids, end in zip(pairs.ids, pairs.target_starts, strict=True)
        ]
        longest = rounded_up(max(map(len, sources)))
        firsts = range(0, len(sources), self._batch_size)
        written = []
        for first in console.progress(firsts, desc="writing", unit="batch"):
            batch = sources[first : first + self._batch_size]
            # Every batch is full, so that one shape is compiled.
            full = batch + batch[:1] * (self._batch_size - len(batch))
            found = self._generator(*pad_left(full, longest), seed=self._seed + first)
            found = [np.array(values)[: len(batch)] for values in found]
            for row, *hypotheses in zip(rows[first : first + len(batch)], *found, strict=True):
                written.append(self._texts(row.values["src"], *hypotheses))
        return written

    def _texts(self, source, ids, lengths, scores, log_probs):
        """Returns the hypotheses of one source: ids [R, T], the rest [R]."""
        vocabulary = self._tokenizer.vocabulary
        texts = []
        for pieces, length, score, log_prob in zip(ids, lengths, scores, log_probs, strict=True):
            if length:
                pieces = vocabulary.pieces_of(pieces[:length].tolist())
                text = detokenize(pieces, source, self._tokenizer)
                texts.append(Hypothesis(text, float(score), float(log_prob)))
        return texts


def write_predictions(path, rows, written):
    """Writes lines of JSON: what a row holds, the best text for it, its score, and the others.

    Args:
      path: the file.
      rows: list of `data.rows.Row`.
      written: what a `TargetWriter` wrote for them.
    """
    lines = []
    for row, hypotheses in zip(rows, written, strict=True):
        best = hypotheses[0]
        line = {**row.values, "prediction": best.text, "score": best.score}
        if len(hypotheses) > 1:
            line["hypotheses"] = [hypothesis._asdict() for hypothesis in hypotheses]
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    files.write_text(path, "".join(lines))


def options_of(values, tokenizer):
    """Returns the `GenerationOptions` of settings.

    Args:
      values: dict of the fields of `SearchSettings` that say how to search, and of
        `max_target_length`.
      tokenizer: `FullTokenizer`.

    Raises:
      UserError: settings that make no sense, or a word to ban that is not one piece.
    """
    exempt = [piece for word in values["exempt_words"] for piece in _pieces(word, tokenizer)]
    banned = list(BANNED_PIECES)
    for word in values["banned_words"]:
        pieces = _pieces(word, tokenizer)
        if len(pieces) != 1:
            raise UserError(
                f"--banned_words: {word!r} is {len(pieces)} pieces ({' '.join(pieces)}), and only "
                "single pieces can be banned"
            )
        banned += pieces
    names = ("beam_size", "num_return_sequences", "length_penalty", "temperature", "top_k")
    return GenerationOptions(
        method=values["decoding"],
        max_length=values["max_target_length"],
        min_length=values["min_target_length"],
        top_p=values["top_p"],
        no_repeat_ngram_size=values["no_repeat_ngram_size"],
        exempt_pieces=tuple(exempt),
        banned_pieces=tuple(banned),
        **{name: values[name] for name in names},
    )


def _pieces(word, tokenizer):
    """Returns the pieces of a word; a name of the vocabulary ([UNK], ##s) is one."""
    return [word] if word in tokenizer.vocabulary else tokenizer.tokenize(word)
