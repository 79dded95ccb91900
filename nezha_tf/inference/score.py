"""How likely a model finds targets or texts."""

import json
import math

import numpy as np

from nezha_tf import console, files
from nezha_tf.data.rows import read_rows
from nezha_tf.errors import UserError, require_flag
from nezha_tf.generation.scoring import PseudoScorer, TargetScorer
from nezha_tf.generation.sources import pad_left, pad_right, rounded_up
from nezha_tf.inference.loading import (
    check_form,
    ids_of,
    load_model,
    open_model,
    settled_form,
    target_format_of,
)
from nezha_tf.tasks.seq2seq.packing import Packing


def score_text(flags):
    """Scores each line of a file.

    Args:
      flags: dict of the flags of tools/score_text.py.

    Returns:
      What to print.

    Raises:
      UserError: a mistake in the flags or in the files.
    """
    score, columns = {
        "seq2seq": (_score_targets, ("src", "tgt")),
        "left_to_right": (_score_continuations, ("text",)),
        "bidirectional": (_score_masked, ("text",)),
    }[flags["mode"]]
    paths = files.expand(require_flag(flags["input_file"], "input_file"), "input_file")
    if flags["output_file"]:
        files.require_other(flags["output_file"], "output_file", paths)
    rows = [row for path in paths for row in read_rows(path, columns)]
    opened = open_model(flags)
    log_probs, truncation = score(rows, opened, settled_form(flags, opened))
    if flags["output_file"]:
        lines = [
            json.dumps({**row.values, **_summary(part)}, ensure_ascii=False) + "\n"
            for row, part in zip(rows, log_probs, strict=True)
        ]
        files.write_text(flags["output_file"], "".join(lines))
    else:
        for row, part in zip(rows, log_probs, strict=True):
            print(_table(row.values[columns[-1]], part))
    return _table(f"{console.plural(len(rows), 'text')}{truncation}", np.concatenate(log_probs))


def _score_targets(rows, opened, flags):
    """Returns the log-probabilities of each target's pieces, and a few words on truncation."""
    target_format = target_format_of(flags)
    model, tokenizer = load_model(opened, check_form(target_format, flags))
    packing = Packing(
        tokenizer,
        flags["max_source_length"],
        flags["max_target_length"],
        flags["truncate_source"],
    )
    pairs = packing.pack(rows)
    sides = [
        (ids[:start].tolist(), ids[start:].tolist())
        for ids, start in zip(pairs.ids, pairs.target_starts, strict=True)
    ]
    scorer = TargetScorer(model, tokenizer.vocabulary, target_format, jit_compile=False)
    return _in_batches(scorer, sides, flags), pairs.truncation()


def _score_continuations(rows, opened, flags):
    """The same of texts that go on from [CLS]; they are not cut."""
    target_format = target_format_of(flags)
    model, tokenizer = load_model(opened, target_format.check)
    vocabulary = tokenizer.vocabulary
    sides = [([vocabulary.cls_id], ids_of(row, "text", tokenizer)) for row in rows]
    scorer = TargetScorer(model, vocabulary, target_format, jit_compile=False)
    return _in_batches(scorer, sides, flags), ""


def _score_masked(rows, opened, flags):
    """The same of texts whose pieces are masked in turn; they are not cut."""
    model, tokenizer = load_model(opened)
    scorer = PseudoScorer(model, tokenizer.vocabulary, jit_compile=False)
    found = []
    for row in rows:
        ids = ids_of(row, "text", tokenizer)
        try:
            found.append(scorer(ids, rounded_up(len(ids) + 2), flags["predict_batch_size"]))
        except UserError as error:
            raise UserError(f"{row.place}: {error}") from error
    return found, ""


def _in_batches(scorer, sides, flags):
    """Returns the log-probabilities of pairs (source, target) of ids, in batches of one length."""
    found = []
    size = flags["predict_batch_size"]
    for first in range(0, len(sides), size):
        sources, targets = zip(*sides[first : first + size], strict=True)
        arrays = [
            array
            for pad, ids in ((pad_left, sources), (pad_right, targets))
            for array in pad(ids, rounded_up(max(map(len, ids))))
        ]
        scores = scorer(*arrays)
        found += [row[: len(target)] for row, target in zip(scores, targets, strict=True)]
    return found


def _summary(log_probs):
    """Returns what the log-probabilities of some pieces come to."""
    total = float(log_probs.sum())
    return {
        "log_prob": total,
        "pieces": len(log_probs),
        "perplexity": math.exp(-total / len(log_probs)),
    }


def _table(title, log_probs):
    summary = _summary(log_probs)
    rows = [
        ("log-probability", f"{summary['log_prob']:.3f}"),
        ("pieces", f"{summary['pieces']:,}"),
        ("perplexity", f"{summary['perplexity']:.2f}"),
    ]
    return console.table(title, rows)
