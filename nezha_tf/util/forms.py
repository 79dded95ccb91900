"""The forms of JSON that programs read back: a file is as they wrote it, or it is refused.

A form is a function that says whether a value fits; `[form]`, a list of values that fit; or a dict
of keys to forms. In such a dict `str` stands for all other keys; without it they are not looked at.
"""

import math
import re
from typing import Any, NamedTuple

from nezha_tf.util.errors import UserError

# Beyond it a number is no count of anything, and float does not tell it from its neighbours.
_LARGEST = 2**53
_MOST_SHOWN = 60


class May(NamedTuple):
    """The form of a key that need not be there."""

    form: Any


def is_anything(value):
    """Whether it is a JSON value."""
    return True


def is_text(value):
    """Whether it is a text that files and their names can hold."""
    # Neither a zero byte nor half a character, which is no UTF-8.
    return isinstance(value, str) and not re.search("[\0\ud800-\udfff]", value)


def is_name(value):
    """Whether it is the name of a file in the same folder."""
    return is_text(value) and "/" not in value and value not in ("", ".", "..")


def is_truth(value):
    """Whether it is true or false."""
    return isinstance(value, bool)


def is_count(value):
    """Whether it is a whole number from 0 on."""
    return type(value) is int and 0 <= value <= _LARGEST


def is_number(value):
    """Whether it is a number; NaN and infinities are."""
    is_whole = type(value) is int and abs(value) <= _LARGEST
    return is_whole or isinstance(value, float)


def is_finite(value):
    """Whether it is a number, neither NaN nor infinite."""
    return is_number(value) and math.isfinite(value)


def is_scalar(value):
    """Whether it is null, a truth, a number or a text."""
    return value is None or is_truth(value) or is_number(value) or is_text(value)


def require(value, form, path):
    """Raises a `UserError` that names the first part of a file's JSON that is not of its form."""
    place = misfit(value, form)
    if place is not None:
        shown = f"{path}: {place}" if place else path
        raise UserError(f"{shown} is not as nezha_tf writes it; restore or remove the file")


def misfit(value, form, place=""):
    """Returns where the first part of a JSON value is that is not of a form; None: it all fits.

    The place is written like `shards[2].bytes`, and "" is the whole value.
    """
    if callable(form):
        return None if form(value) else place
    if not isinstance(value, type(form)):
        return place
    if isinstance(form, list):
        parts = ((each, form[0], f"{place}[{index}]") for index, each in enumerate(value))
    else:
        parts = _of_keys(value, form, f"{place}." if place else "")
    found = (misfit(*part) for part in parts)
    return next((where for where in found if where is not None), None)


def _of_keys(value, form, before):
    """Yields (value, form, place) of the keys of a form of a dict."""
    for key, own in form.items():
        is_optional = isinstance(own, May)
        if key is not str and (key in value or not is_optional):
            yield value.get(key, _Absent), own.form if is_optional else own, f"{before}{key}"
    for key in value.keys() - form.keys() if str in form else ():
        yield key, is_text, f"a key of {before[:-1]}" if before else "a key"
        yield value[key], form[str], f"{before}{_shown(key)}"


def _shown(key):
    """Returns a key as a part of a message of one line."""
    key = key if key.isprintable() else repr(key)
    return key if len(key) <= _MOST_SHOWN else f"{key[:_MOST_SHOWN]}..."


class _Absent:
    """Stands for the value of a key that is not there; it is of no form but `is_anything`."""
