"""Maps entities between characters and tokens, and divides long texts into windows."""

import bisect
from typing import NamedTuple

import numpy as np

from nezha_tf.data.entity_tags import Entity


class Unit(NamedTuple):
    """The tokens that share one tag; they cover the characters [start, end) of the raw text.

    It is a single token, except where several tokens come from one character (stripping accents
    decomposes a Hangul syllable). The tag is that of the first token, whose index is `token`.
    """

    token: int
    start: int
    end: int


def units_of(tokens):
    """Returns the units of a text's tokens (`FullTokenizer.tokenize_with_offsets`), in order."""
    units = []
    for number, token in enumerate(tokens):
        if units and token.start < units[-1].end:
            units[-1] = units[-1]._replace(end=max(units[-1].end, token.end))
        else:
            units.append(Unit(number, token.start, token.end))
    return units


def to_units(entities, units):
    """Returns a list of each entity by the indices of its units, or None if it has no unit.

    An entity gets every unit with one of its characters, so an entity that begins or ends inside a
    unit grows. A unit with characters of two entities goes to the first one. An entity has no unit
    if the tokenizer drops all its characters, or the entity before it has got all its units.

    Args:
      entities: list of `Entity` by characters, in order and without overlap.
      units: list of `Unit`.
    """
    starts, ends = [unit.start for unit in units], [unit.end for unit in units]
    found, free = [], 0
    for start, end, label in entities:
        first = max(free, bisect.bisect_right(ends, start))
        behind = bisect.bisect_left(starts, end)
        found.append(Entity(first, behind, label) if first < behind else None)
        free = max(free, behind)
    return found


def to_characters(entity, units):
    """Returns an entity by the characters of its units."""
    return entity._replace(start=units[entity.start].start, end=units[entity.end - 1].end)


def window_starts(length, size, stride):
    """Returns the starts of the windows that cover a sequence; the last window is full.

    Args:
      length: length of the sequence.
      size: length of a window.
      stride: distance between the starts of two windows, at most `size`.
    """
    return [*range(0, length - size, stride), max(0, length - size)]


def best_windows(length, size, starts):
    """Returns, for each place, the window whose nearer end is farthest away, int64 [length].

    Args:
      length, size: see `window_starts`.
      starts: the result of `window_starts`.
    """
    places, starts = np.arange(length), np.array(starts)[:, None]
    ends = np.minimum(starts + size, length)
    return np.argmax(np.minimum(places - starts, ends - 1 - places), axis=0)
