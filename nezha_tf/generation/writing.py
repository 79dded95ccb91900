"""Writes targets for the sources of a file, or continues a prompt."""

import dataclasses
import json
from typing import NamedTuple

import numpy as np

from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import Row, read_pairs
from nezha_tf.generation.generator import Generator
from nezha_tf.generation.model import load_model, open_model, with_defaults
from nezha_tf.generation.settings import SEARCH_DEFAULTS
from nezha_tf.generation.sources import Packing, pad_left, rounded_up
from nezha_tf.generation.target_format import MODES
from nezha_tf.generation.writing_format import format_of, with_format
from nezha_tf.text.detokenization import detokenize
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_unicode
from nezha_tf.util.settings import require_read


def generate_text(settings):
    """Writes texts as `GenerateSettings` say; returns what to print: how many, or the texts."""
    bad_rows = BadRows()
    rows = _read(settings, bad_rows)
    opened = open_model(settings)
    given = settings
    settings = with_defaults(with_format(given, opened), opened, SEARCH_DEFAULTS)
    require_read(given, settings)
    banned = (*settings.banned_words, *MODES[settings.mode].banned)
    settings = dataclasses.replace(settings, banned_words=banned)
    form = format_of(vars(settings), opened.tokenizer)
    form.check(opened.config)
    model, tokenizer = load_model(opened)
    pairs = Packing(tokenizer, form.source).pack(rows)
    batch_size = min(settings.predict_batch_size, len(rows))
    compiles = len(rows) > batch_size if settings.jit_compile is None else settings.jit_compile
    writer = TargetWriter(model, tokenizer, form, batch_size, settings.seed, compiles)
    written = writer(rows, pairs)
    done = f"{console.plural(len(rows), 'text')}{pairs.truncation()}{bad_rows.note()}"
    if settings.output_file:
        write_predictions(settings.output_file, rows, written)
        return f"{done}; written to {settings.output_file}"
    tables = [
        console.table(row.values["src"], [(f"{h.score:.3f}", h.text) for h in hypotheses])
        for row, hypotheses in zip(rows, written, strict=True)
    ]
    return "\n".join([*tables, done])


def _read(settings, bad_rows):
    """Returns --prompt, or the sources of --input_file: list of `Row`; counts blank lines."""
    if bool(settings.prompt) == bool(settings.input_file):
        raise UserError("one of --prompt and --input_file is needed")
    if settings.output_file:
        files.require_file(settings.output_file, "output_file")
    if settings.prompt:
        require_unicode(settings.prompt, "prompt")
        return [Row({"src": settings.prompt}, "--prompt", 1)]
    # A row may also have a target, as in the files of run_seq2seq.py; it is copied to the output.
    paths = files.expand(settings.input_file, "input_file")
    if settings.output_file:
        files.require_other(settings.output_file, "output_file", paths)
    return read_pairs(paths, settings.pair_columns, optional=("tgt",), bad_rows=bad_rows)


class Hypothesis(NamedTuple):
    """A written text, its score, and its log-probability without the length penalty."""

    text: str
    score: float
    log_prob: float


class TargetWriter:
    """Writes the targets of sources with a model's current weights."""

    def __init__(self, model, tokenizer, form, batch_size, seed, jit_compile):
        """A row is drawn with the seed plus its number, so that batches do not matter.

        The format is a `WritingFormat`; the other arguments are those of `Generator`.
        """
        self._generator = Generator(
            model, tokenizer.vocabulary, form.target_format, form.options, jit_compile
        )
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._seed = seed

    def __call__(self, rows, pairs):
        """Returns a list of `Hypothesis`, best first, for each `data.rows.Row` and its `Pairs`."""
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
    """Writes a line of JSON for each row and what a `TargetWriter` has written for it."""
    lines = []
    for row, hypotheses in zip(rows, written, strict=True):
        best = hypotheses[0]
        line = {"line": row.line, **row.values, "prediction": best.text, "score": best.score}
        if len(hypotheses) > 1:
            line["hypotheses"] = [hypothesis._asdict() for hypothesis in hypotheses]
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    files.write_text(path, "".join(lines))
