"""Scores texts: how probable a model finds targets for their sources, or texts alone."""

import json
import math
import sys

import numpy as np

from nezha_tf.data.bad_rows import BadRows
from nezha_tf.data.rows import read_rows
from nezha_tf.generation.scoring import PseudoScorer, TargetScorer
from nezha_tf.generation.sources import pad_left, pad_right, rounded_up
from nezha_tf.inference.loading import load_model, open_model
from nezha_tf.inference.prompts import ids_of
from nezha_tf.inference.settling import (
    check_form,
    require_blanks,
    settled_form,
    settled_scoring_mode,
    target_format_of,
)
from nezha_tf.tasks.seq2seq.packing import Packing
from nezha_tf.tasks.seq2seq.reading import read_pairs
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import refuse

_OF_PAIRS = (
    "max_source_length",
    "max_target_length",
    "truncate_source",
    "source_column",
    "target_column",
)
# The exponential of more is no float64, and JSON has no infinity.
MOST_EXPONENT = math.log(sys.float_info.max)
# The flags that a mode does not read.
_UNREAD = {
    "seq2seq": (),
    "left_to_right": _OF_PAIRS,
    "bidirectional": (*_OF_PAIRS, "segment_ids", "target_prediction"),
}


def score_text(settings):
    """Scores each line of a file.

    Args:
      settings: `ScoreSettings`.

    Returns:
      Text to print: a table for all lines together.

    Raises:
      UserError: a mistake in the flags or in the files.
    """
    paths = files.expand(require_flag(settings.input_file, "input_file"), "input_file")
    if settings.output_file:
        files.require_file(settings.output_file, "output_file")
        files.require_other(settings.output_file, "output_file", paths)
    opened = open_model(settings)
    given, settings = settings, settled_scoring_mode(settings, opened)
    refuse(given, _UNREAD[settings.mode], f"--mode={settings.mode}")
    settings = settled_form(settings, opened)
    score, text_column = {
        "seq2seq": (_score_targets, "tgt"),
        "left_to_right": (_score_continuations, "text"),
        "bidirectional": (_score_masked, "text"),
    }[settings.mode]
    bad_rows = BadRows()
    if settings.mode == "seq2seq":
        rows = read_pairs(paths, settings.pair_columns, bad_rows=bad_rows)
    else:
        columns = (text_column,)
        rows = [row for path in paths for row in read_rows(path, columns, bad_rows=bad_rows)]
    log_probs, truncation = score(rows, opened, settings)
    if settings.output_file:
        lines = [
            json.dumps({"line": row.line, **row.values, **_summary(part)}, ensure_ascii=False)
            + "\n"
            for row, part in zip(rows, log_probs, strict=True)
        ]
        files.write_text(settings.output_file, "".join(lines))
    else:
        for row, part in zip(rows, log_probs, strict=True):
            print(_table(row.values[text_column], part))
    told = f"{console.plural(len(rows), 'text')}{truncation}{bad_rows.note()}"
    return _table(told, np.concatenate(log_probs))


def _score_targets(rows, opened, settings):
    """Scores targets for their sources.

    Args:
      rows: list of `data.rows.Row`.
      opened: as returned by `open_model`.
      settings: `ScoreSettings` with values for all flags.

    Returns:
      (list of float arrays [n], the log-probabilities of each target's n tokens; text that says
      how many texts were truncated, or "").
    """
    target_format = target_format_of(settings)
    model, tokenizer = load_model(opened, check_form(target_format, settings))
    packing = Packing(
        tokenizer,
        settings.max_source_length,
        settings.max_target_length,
        settings.truncate_source,
    )
    pairs = packing.pack(rows)
    sides = [
        (ids[:start].tolist(), ids[start:].tolist())
        for ids, start in zip(pairs.ids, pairs.target_starts, strict=True)
    ]
    scorer = TargetScorer(model, tokenizer.vocabulary, target_format, jit_compile=False)
    return _in_batches(scorer, sides, settings.predict_batch_size), pairs.truncation()


def _score_continuations(rows, opened, settings):
    """Scores whole texts from left to right, each after [CLS]; see `_score_targets`."""
    target_format = target_format_of(settings)
    model, tokenizer = load_model(opened, target_format.check)
    vocabulary = tokenizer.vocabulary
    sides = [([vocabulary.cls_id], ids_of(row, "text", tokenizer)) for row in rows]
    scorer = TargetScorer(model, vocabulary, target_format, jit_compile=False)
    return _in_batches(scorer, sides, settings.predict_batch_size), ""


def _score_masked(rows, opened, settings):
    """Scores whole texts, of which each token is masked in turn; see `_score_targets`."""
    require_blanks(opened)
    model, tokenizer = load_model(opened)
    scorer = PseudoScorer(model, tokenizer.vocabulary, jit_compile=False)
    found = []
    for row in rows:
        ids = ids_of(row, "text", tokenizer)
        try:
            found.append(scorer(ids, rounded_up(len(ids) + 2), settings.predict_batch_size))
        except UserError as error:
            raise UserError(f"{row.place}: {error}") from error
    return found, ""


def _in_batches(scorer, sides, batch_size):
    """Scores targets batch by batch.

    Args:
      scorer: `TargetScorer`.
      sides: list of (ids of a source, ids of its target).
      batch_size: int.

    Returns:
      As `_score_targets`, its first result.
    """
    found = []
    for first in range(0, len(sides), batch_size):
        sources, targets = zip(*sides[first : first + batch_size], strict=True)
        arrays = [
            array
            for pad, ids in ((pad_left, sources), (pad_right, targets))
            for array in pad(ids, rounded_up(max(map(len, ids))))
        ]
        scores = scorer(*arrays)
        found += [row[: len(target)] for row, target in zip(scores, targets, strict=True)]
    return found


def _summary(log_probs):
    """Returns the log-probability, the number of tokens and the perplexity of some tokens.

    The perplexity is None where float64 is too small for it.
    """
    total = float(log_probs.sum())
    mean = -total / len(log_probs)
    return {
        "log_prob": total,
        "tokens": len(log_probs),
        "perplexity": math.exp(mean) if mean < MOST_EXPONENT else None,
    }


def _table(title, log_probs):
    summary = _summary(log_probs)
    perplexity = summary["perplexity"]
    rows = [
        ("log-probability", f"{summary['log_prob']:.3f}"),
        ("tokens", f"{summary['tokens']:,}"),
        ("perplexity", "inf" if perplexity is None else f"{perplexity:.2f}"),
    ]
    return console.table(title, rows)
