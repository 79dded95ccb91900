"""The names and globs in a flag, each with its weight: `news*.tfrecord:3,books*.tfrecord:1`."""

import re
from fractions import Fraction
from typing import NamedTuple

from nezha_tf.util import storage

_WEIGHTED = re.compile(r"(.+):(\d+\.?\d*|\.\d+)")


class Part(NamedTuple):
    """A name or glob, and the number behind it, or None."""

    pattern: str
    weight: Fraction | None


def parts_of(value):
    """Returns a list of `Part`, one for each name or glob of a comma-separated list.

    `:NUMBER` at the end is a weight, unless a file has the whole name. Other colons belong to the
    name, as in `gs://bucket`.
    """
    return [_part(text) for text in map(str.strip, value.split(",")) if text]


def patterns_in(value):
    """Returns a list of the names and globs of a comma-separated list, without weights."""
    return [part.pattern for part in parts_of(value)]


def _part(text):
    found = _WEIGHTED.fullmatch(text)
    if not found or storage.exists(text):
        return Part(text, None)
    return Part(found[1], Fraction(found[2]))
