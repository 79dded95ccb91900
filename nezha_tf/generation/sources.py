"""Pads sources of different lengths to one batch."""

import numpy as np

from nezha_tf.util.errors import UserError

# Lengths are rounded up to a multiple of this, so that few shapes are compiled.
LENGTH_STEP = 16


def rounded_up(length):
    """Returns the padded length for sources of at most `length` tokens."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def pad_left(sources, length):
    """Pads sources on the left, so that all end at the same place.

    Args:
      sources: B lists of ids.
      length: S.

    Returns:
      (source_ids, source_mask), int32 NumPy arrays [B, S].

    Raises:
      UserError: a source is empty or longer than `length`.
    """
    source_ids = np.zeros((len(sources), length), "int32")
    source_mask = np.zeros_like(source_ids)
    for row, source in enumerate(sources):
        if not 0 < len(source) <= length:
            raise UserError(
                f"source {row + 1} has {len(source)} tokens, but must have 1 to {length}"
            )
        source_ids[row, -len(source) :] = source
        source_mask[row, -len(source) :] = 1
    return source_ids, source_mask


def pad_right(targets, length):
    """Pads targets on the right; arguments and result are those of `pad_left`."""
    ids, mask = pad_left([target[::-1] for target in targets], length)
    return ids[:, ::-1].copy(), mask[:, ::-1].copy()
