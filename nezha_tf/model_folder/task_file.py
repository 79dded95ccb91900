"""`task.json`: what a run says of its model, so that its folder is enough to use it."""

import json
import math
import os
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.config import TARGET_PREDICTIONS
from nezha_tf.data.entity_tags import SCHEMES
from nezha_tf.errors import UserError
from nezha_tf.files import read_object, write_text
from nezha_tf.generation.options import METHODS

FILE_NAME = "task.json"


class _Kind(NamedTuple):
    """A kind of value: what it is called in a message, and its test."""

    words: str
    fits: Callable


def _one_of(*choices):
    return _Kind(f"one of {', '.join(choices)}", lambda value: value in choices)


def _at_least(least):
    words = f"a whole number of at least {least}"
    return _Kind(words, lambda value: type(value) is int and value >= least)


def _are_texts(value):
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_BOOL = _Kind("true or false", lambda value: isinstance(value, bool))
_NUMBER = _Kind("a number", lambda v: type(v) in (int, float) and math.isfinite(v))
_TEXT = _Kind("a text", lambda value: isinstance(value, str))
_TEXTS = _Kind("a list of texts", _are_texts)
_NAMES = _Kind("a list of different texts", lambda v: _are_texts(v) and len(set(v)) == len(v))

# What the file has of each task, beside its name under "task": those of the program's flags are
# under their names.
COMMON = {"do_lower_case": _BOOL, "max_seq_length": _at_least(1), "uses_averages": _BOOL}
SETTINGS = {
    "pretraining": {"objectives": _TEXT},
    "classification": {
        "label_type": _one_of("single", "multi", "regression"),
        "labels": _NAMES,
        "is_pair": _BOOL,
    },
    "tagging": {
        "labels": _NAMES,
        "scheme": _one_of(*SCHEMES),
        "crf": _BOOL,
        "window_stride": _at_least(1),
    },
    "reading_comprehension": {
        "max_query_length": _at_least(1),
        "doc_stride": _at_least(1),
        "max_answer_length": _at_least(1),
        "n_best_size": _at_least(1),
        "version_2_with_negative": _BOOL,
        "null_score_diff_threshold": _NUMBER,
    },
    "seq2seq": {
        "target_prediction": _one_of(*TARGET_PREDICTIONS),
        "max_source_length": _at_least(1),
        "max_target_length": _at_least(1),
        "truncate_source": _one_of("tail", "head"),
        "min_target_length": _at_least(1),
        "decoding": _one_of(*METHODS),
        "beam_size": _at_least(1),
        "num_return_sequences": _at_least(1),
        "length_penalty": _NUMBER,
        "temperature": _NUMBER,
        "top_k": _at_least(0),
        "top_p": _NUMBER,
        "no_repeat_ngram_size": _at_least(0),
        "exempt_words": _TEXTS,
        "banned_words": _TEXTS,
    },
}


def read(folder):
    """Returns what the `task.json` of a folder says, a dict, or None where there is none.

    Raises:
      UserError: it cannot be read, lacks a setting, or has one that cannot be.
    """
    path = os.path.join(folder, FILE_NAME)
    values = read_object(path)
    if values is not None:
        check(path, values)
    return values


def write(folder, settings):
    """Writes `task.json`; it appears whole or not at all.

    Args:
      folder: of the run.
      settings: dict of "task", the keys of `COMMON` and those of the task in `SETTINGS`.
    """
    path = os.path.join(folder, FILE_NAME)
    check(path, settings)
    write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def check(path, values):
    """Raises a `UserError` where a dict is not what a `task.json` holds; the path names it."""
    task = values.get("task")
    if not isinstance(task, str) or task not in SETTINGS:
        raise UserError(f"{path}: task must be one of {', '.join(SETTINGS)}, not {task!r}")
    for name, kind in {**COMMON, **SETTINGS[task]}.items():
        if name not in values:
            raise UserError(f"{path} lacks {name!r}; it is damaged")
        if not kind.fits(values[name]):
            shown = json.dumps(values[name], ensure_ascii=False)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise UserError(f"{path}: {name} must be {kind.words}, not {shown}")
