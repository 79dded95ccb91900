"""Scores texts: how probable a model finds targets for their sources, or texts alone."""

import json
import math
import sys

import numpy as np
import tensorflow as tf

from nezha_tf.config import SEGMENT_IDS
from nezha_tf.data.lines import BadRows
from nezha_tf.data.rows import read_pairs, read_rows
from nezha_tf.generation.decoder import position_ids
from nezha_tf.generation.fill import require_blanks
from nezha_tf.generation.generator import check_room
from nezha_tf.generation.model import load_model, open_model
from nezha_tf.generation.sources import Packing, Side, pad_left, pad_right, rounded_up
from nezha_tf.generation.writing_format import source_side, target_format_of, with_format
from nezha_tf.modeling import attention_mask, positions
from nezha_tf.util import console, files
from nezha_tf.util.errors import UserError, require_flag
from nezha_tf.util.settings import require_read

# The exponential of more is no float64, and JSON has no infinity.
MOST_EXPONENT = math.log(sys.float_info.max)


def score_text(settings):
    """Scores each line of a file, as `ScoreSettings` say; returns a table for all lines."""
    paths = files.expand(require_flag(settings.input_file, "input_file"), "input_file")
    if settings.output_file:
        files.require_file(settings.output_file, "output_file")
        files.require_other(settings.output_file, "output_file", paths)
    opened = open_model(settings)
    given, settings = settings, with_format(settings, opened, other="bidirectional")
    require_read(given, settings)
    (score, column), bad_rows = _MODES[settings.mode], BadRows()
    if column == "tgt":
        rows = read_pairs(paths, settings.pair_columns, bad_rows=bad_rows)
    else:
        rows = [row for path in paths for row in read_rows(path, (column,), bad_rows=bad_rows)]
    log_probs, truncation = score(rows, opened, settings)
    summaries = [_summary(part) for part in log_probs]
    if settings.output_file:
        lines = [
            json.dumps({"line": row.line, **row.values, **summary}, ensure_ascii=False) + "\n"
            for row, summary in zip(rows, summaries, strict=True)
        ]
        files.write_text(settings.output_file, "".join(lines))
    else:
        for row, summary in zip(rows, summaries, strict=True):
            print(_table(row.values[column], summary))
    title = f"{console.plural(len(rows), 'text')}{truncation}{bad_rows.note()}"
    return _table(title, _summary(np.concatenate(log_probs)))


def _score_targets(rows, opened, settings):
    """Returns (list of arrays [n], log-probabilities of a row's n tokens; a note or "")."""
    target_format = target_format_of(vars(settings))
    target_format.check(opened.config)
    source = source_side(vars(settings))
    target = Side("target", 1, settings.max_target_length, "tail")
    check_room(opened.config, np.array([source.max_length]), target.max_length)
    model, tokenizer = load_model(opened)
    pairs = Packing(tokenizer, source, target).pack(rows)
    scorer = TargetScorer(model, tokenizer.vocabulary, target_format)
    return scorer.in_batches(pairs.sides(), settings.predict_batch_size), pairs.truncation()


def _score_continuations(rows, opened, settings):
    """Scores whole texts from left to right, each after [CLS]."""
    target_format = target_format_of(vars(settings))
    target_format.check(opened.config)
    model, tokenizer = load_model(opened)
    sides = [([tokenizer.vocabulary.cls_id], ids) for ids in _ids_of(rows, tokenizer)]
    scorer = TargetScorer(model, tokenizer.vocabulary, target_format)
    return scorer.in_batches(sides, settings.predict_batch_size), ""


def _score_masked(rows, opened, settings):
    """Scores whole texts, of which each token is masked in turn."""
    require_blanks(opened)
    model, tokenizer = load_model(opened)
    scorer = PseudoScorer(model, tokenizer.vocabulary)
    log_probs = []
    for row, ids in zip(rows, _ids_of(rows, tokenizer), strict=True):
        try:
            log_probs.append(scorer(ids, rounded_up(len(ids) + 2), settings.predict_batch_size))
        except UserError as error:
            raise UserError(f"{row.place}: {error}") from error
    return log_probs, ""


# Mode: the function that scores, and the column that is scored.
_MODES = {
    "seq2seq": (_score_targets, "tgt"),
    "left_to_right": (_score_continuations, "text"),
    "bidirectional": (_score_masked, "text"),
}


def _ids_of(rows, tokenizer):
    for row in rows:
        ids = tokenizer.vocabulary.ids_of(tokenizer.tokenize(row.values["text"]))
        if not ids:
            raise UserError(f"{row.place}: text has no tokens; write a text")
        yield ids


def _summary(log_probs):
    """Returns a dict of JSON; the perplexity is None where float64 is too small for it."""
    total = float(log_probs.sum())
    mean = -total / len(log_probs)
    return {
        "log_prob": total,
        "tokens": len(log_probs),
        "perplexity": math.exp(mean) if mean < MOST_EXPONENT else None,
    }


def _table(title, summary):
    perplexity = summary["perplexity"]
    rows = [
        ("log-probability", f"{summary['log_prob']:.3f}"),
        ("tokens", f"{summary['tokens']:,}"),
        ("perplexity", "inf" if perplexity is None else f"{perplexity:.2f}"),
    ]
    return console.facts(title, rows)


class TargetScorer:
    """Computes the log-probability of each token of given targets after the tokens before it.

    With the target prediction "masked", each token of a target is read once, and a [MASK] at the
    same place, which sees the tokens before it, predicts the token. With "shift", the tokens
    themselves predict. To score a text without a source, use [CLS] as its source and the mode
    "left_to_right".
    """

    def __init__(self, model, vocabulary, target_format):
        """Arguments: see `Generator`; raises `UserError` if the model lacks the segments."""
        target_format.check(model.config)
        self._model, self._target_format, self._mask_id = model, target_format, vocabulary.mask_id
        self._score = tf.function(self._log_probs, autograph=False)

    def __call__(self, source_ids, source_mask, target_ids, target_mask):
        """Returns the log-probabilities of targets, float32 NumPy array [B, T]; 0 for padding.

        Args:
          source_ids, source_mask: int [B, S], padded on the left (`pad_left`).
          target_ids, target_mask: int [B, T], padded on the right. The final [SEP], if present,
            is scored too.

        Raises:
          UserError: source and target together are longer than the table of positions.
        """
        lengths = (np.sum(mask, axis=1) for mask in (source_mask, target_mask))
        check_room(self._model.config, *lengths)
        arrays = (source_ids, source_mask, target_ids, target_mask)
        return self._score(*(tf.constant(array, tf.int32) for array in arrays)).numpy()

    def in_batches(self, sides, batch_size):
        """Returns the log-probabilities of each target's n tokens, a list of arrays [n].

        The argument `sides` is a list of (ids of a source, ids of its target).
        """
        log_probs = []
        for first in range(0, len(sides), batch_size):
            sources, targets = zip(*sides[first : first + batch_size], strict=True)
            source_length, target_length = (
                rounded_up(max(map(len, ids))) for ids in (sources, targets)
            )
            scores = self(*pad_left(sources, source_length), *pad_right(targets, target_length))
            log_probs += [row[: len(target)] for row, target in zip(scores, targets, strict=True)]
        return log_probs

    def _log_probs(self, source_ids, source_mask, target_ids, target_mask):
        source_length, target_length = source_ids.shape[1], target_ids.shape[1]
        length = source_length + target_length
        ids, masks = [source_ids, target_ids], [source_mask, target_mask]
        places, first = tf.range(length), source_length - 1
        if self._target_format.is_masked:
            ids.append(tf.fill(target_ids.shape, self._mask_id))
            masks.append(target_mask)
            places = tf.concat([places, places[source_length:]], axis=0)
            first = length
        input_ids, input_mask = tf.concat(ids, axis=1), tf.concat(masks, axis=1)
        ranks = tf.gather(self._target_format.ranks(source_length, target_length), places, axis=1)
        segments = tf.where(places < source_length, *self._target_format.segment_ids)
        is_blank = tf.range(input_ids.shape[1]) >= length
        predictions = tf.range(first, first + target_length)
        inputs = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": tf.broadcast_to(segments, input_ids.shape),
            "attention_mask": attention_mask.with_blanks(ranks, input_mask, is_blank),
            "position_ids": position_ids(self._model.encoder.positions, source_mask, places),
            "masked_lm_positions": tf.broadcast_to(predictions, target_ids.shape),
        }
        logits = self._model(inputs)["masked_lm_logits"]
        log_probs = tf.gather(tf.nn.log_softmax(logits), target_ids, batch_dims=2)
        return tf.where(target_mask == 1, log_probs, 0.0)


class PseudoScorer:
    """Computes the log-probability of each token of a text when only this token is masked.

    Their mean gives the pseudo-perplexity (Salazar et al., arXiv 1910.14659 §2).
    """

    def __init__(self, model, vocabulary):
        self._model, self._vocabulary = model, vocabulary
        self._score = tf.function(self._log_probs, autograph=False)

    def __call__(self, text_ids, length, batch_size=32):
        """Returns the log-probabilities of a text's tokens, float32 NumPy array [n].

        Args:
          text_ids: the ids of the text, without [CLS] and [SEP].
          length: what the text is padded to, or less if the table of positions is shorter.
          batch_size: number of copies of the text in a batch of the model.

        Raises:
          UserError: the text is longer than the table of positions.
        """
        config, num_tokens = self._model.config, len(text_ids) + 2
        kind = positions.of(config)
        kind.check_length(config, num_tokens, f"a text of {num_tokens} tokens")
        length = max(num_tokens, min(length, kind.longest(config) or length))
        tokens = [self._vocabulary.cls_id, *text_ids, self._vocabulary.sep_id]
        input_ids, _ = pad_right([tokens], length)
        # The last batch is filled up, so that only one shape is traced.
        places = np.arange(-(-len(text_ids) // batch_size) * batch_size) + 1
        batches = np.minimum(places, num_tokens - 2).reshape(-1, batch_size)
        inputs = tf.constant(input_ids[0]), tf.constant(num_tokens)
        parts = [self._score(*inputs, tf.constant(part, tf.int32)).numpy() for part in batches]
        return np.concatenate([*parts, np.zeros(0, "float32")])[: len(text_ids)]

    def _log_probs(self, input_ids, num_tokens, places):
        shape = (places.shape[0], input_ids.shape[0])
        index = tf.range(shape[1])
        is_masked = index == places[:, None]
        outputs = self._model(
            {
                "input_ids": tf.where(is_masked, self._vocabulary.mask_id, input_ids),
                "input_mask": tf.broadcast_to(tf.cast(index < num_tokens, tf.int32), shape),
                "segment_ids": tf.fill(shape, SEGMENT_IDS["bidirectional"][0]),
                "masked_lm_positions": places[:, None],
            }
        )
        log_probs = tf.nn.log_softmax(outputs["masked_lm_logits"][:, 0])
        return tf.gather(log_probs, tf.gather(input_ids, places), batch_dims=1)
