"""Kinds of values in `task.json`, with their tests and their descriptions for messages."""

from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.util import forms

# More tokens than any model here can read or write at once.
_MOST_TOKENS = 1 << 20


class Value(NamedTuple):
    """A kind of value.

    Attributes:
      words: its description in messages.
      fits: function of a JSON value that returns whether the value is of this kind.
    """

    words: str
    fits: Callable


def one_of(*choices):
    """Returns the kind of value that is one of the choices."""
    return Value(f"one of {', '.join(choices)}", lambda value: value in choices)


def at_least(least):
    """Returns the kind of value that is an int of at least `least`, and a number of tokens."""
    words = f"a whole number of at least {least} and at most {_MOST_TOKENS}"
    return Value(words, lambda value: type(value) is int and least <= value <= _MOST_TOKENS)


def _are_texts(value):
    return isinstance(value, list) and all(map(forms.is_text, value))


BOOL = Value("true or false", lambda value: isinstance(value, bool))
NUMBER = Value("a number", forms.is_finite)
TEXT = Value("a text", forms.is_text)
TEXTS = Value("a list of texts", _are_texts)
NAMES = Value("a list of different texts", lambda v: _are_texts(v) and len(set(v)) == len(v))
