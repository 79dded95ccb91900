"""Characters and pieces: what an entity on the one is on the other; windows of long texts."""

import bisect
from typing import NamedTuple

import numpy as np

from nezha_tf.data.entity_tags import Entity


class Unit(NamedTuple):
    """What has one tag: the pieces that share the characters [start, end) of the raw text.

    It is one piece, but where the pieces of a character cannot be told apart in the text (a
    Hangul syllable that stripping accents takes apart). The tag is that of the first, `piece`.
    """

    piece: int
    start: int
    end: int


def units_of(pieces):
    """Returns the units of a text's pieces (`FullTokenizer.tokenize_with_offsets`), in order."""
    units = []
    for number, piece in enumerate(pieces):
        if units and piece.start < units[-1].end:
            units[-1] = units[-1]._replace(end=max(units[-1].end, piece.end))
        else:
            units.append(Unit(number, piece.start, piece.end))
    return units


def to_units(entities, units):
    """Returns each entity by the places of its units, or None where it has none.

    An entity takes every unit that holds one of its characters, so one that begins or ends within
    a unit grows. A unit that holds characters of two entities goes to the first. An entity has none
    where nothing is left to it, or nothing is there but what the tokenizer drops.

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
    """Returns an entity by the characters from its first unit's start to its last one's end."""
    return entity._replace(start=units[entity.start].start, end=units[entity.end - 1].end)


def window_starts(length, size, stride):
    """Returns where the windows of a sequence start; they cover it, and the last one is full.

    Args:
      length: of the sequence.
      size: of a window.
      stride: from one start to the next, at most `size`.
    """
    return [*range(0, length - size, stride), max(0, length - size)]


def best_windows(length, size, starts):
    """Returns the window in which each place has most on its poorer side, int64 [length].

    Args:
      length, size: as for `window_starts`.
      starts: what it returned.
    """
    places, starts = np.arange(length), np.array(starts)[:, None]
    ends = np.minimum(starts + size, length)
    return np.argmax(np.minimum(places - starts, ends - 1 - places), axis=0)
