"""Kinds of values in `task.json`: what each is called in a message, and its test."""

import math
from collections.abc import Callable
from typing import NamedTuple


class Value(NamedTuple):
    """A kind of value.

    Attributes:
      words: what it is called in a message.
      fits: function of a value, as JSON gives it, that says whether it is one.
    """

    words: str
    fits: Callable


def one_of(*choices):
    """Returns the kind of value that is one of some texts."""
    return Value(f"one of {', '.join(choices)}", lambda value: value in choices)


def at_least(least):
    """Returns the kind of value that is a whole number from `least` on."""
    words = f"a whole number of at least {least}"
    return Value(words, lambda value: type(value) is int and value >= least)


def _are_texts(value):
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


BOOL = Value("true or false", lambda value: isinstance(value, bool))
NUMBER = Value("a number", lambda v: type(v) in (int, float) and math.isfinite(v))
TEXT = Value("a text", lambda value: isinstance(value, str))
TEXTS = Value("a list of texts", _are_texts)
NAMES = Value("a list of different texts", lambda v: _are_texts(v) and len(set(v)) == len(v))
