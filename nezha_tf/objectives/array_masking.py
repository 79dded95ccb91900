"""Masks many sequences at once on NumPy arrays."""

from typing import NamedTuple

import numpy as np

from nezha_tf.data import draws
from nezha_tf.objectives.policies import Masking, replacements


class Masked(NamedTuple):
    """Masked sequences.

    Attributes:
      ids: int32 [B, T], the tokens after masking.
      positions: int32 [B, P], the predicted positions in rising order, then zeros.
      labels: int32 [B, P], the original tokens at these positions, then zeros.
      weights: float32 [B, P], 1 for a prediction, then zeros.
    """

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class ArrayMasking(Masking):
    """Applies a `MaskingPolicy` to rows.

    The units of each row are shuffled by sorting random keys. Each step then takes the next anchor
    of every row with budget left. A run that exceeds the budget, or overlaps a chosen run, is
    skipped, as in the original. What is drawn for a row depends only on its key.
    """

    def __call__(self, rows, keys):
        """Returns `PackedRows` as `Masked`; `keys`, uint64 [B], are random."""
        units = MaskUnits.of(rows, self._policy.of_words)
        order, sizes = self.anchors(units, keys)
        anchor_of = choose(units, order, sizes, self._budgets[rows.lengths])
        row, unit = np.nonzero(anchor_of >= 0)
        first, sizes = units.starts[row, unit], (units.ends - units.starts)[row, unit]
        place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes - first, sizes)
        drawn_at = place
        if self._policy.draws_once:
            drawn_at = np.repeat(units.starts[row, anchor_of[row, unit]], sizes)
        row = np.repeat(row, sizes)
        ids = rows.ids.copy()
        labels = ids[row, place]
        ids[row, place] = self._replacements(labels, keys[row], place, drawn_at)
        return self._with_slots(ids, labels, row, place)

    def anchors(self, units, keys):
        """Draws the order of anchors and the length of each anchor's run.

        Returns:
          (order int64 [B, U], the units of each row in random order, unused places last;
          sizes int64 [B, U], the number of units in the run of each anchor, the anchor included).
        """
        keys = keys[:, None]
        shuffle = draws.bits(keys, units.starts)
        shuffle[units.numbers >= units.counts[:, None]] = np.iinfo(np.uint64).max
        order = np.argsort(shuffle, axis=1)
        if not len(self._policy.run_ends):
            return order, np.ones_like(order)
        drawn = draws.uniform(keys, units.starts + self._length)
        sizes = 1 + np.searchsorted(self._policy.run_ends, drawn, side="right")
        return order, np.minimum(sizes, units.left)  # a run ends with its segment

    def _replacements(self, tokens, keys, places, drawn_at):
        share = draws.uniform(keys, drawn_at + 2 * self._length)
        random_bits = draws.bits(keys, places + 3 * self._length) >> np.uint64(32)
        random_ids = (random_bits * np.uint64(self._vocab_size)) >> np.uint64(32)
        return replacements(tokens, share, random_ids.astype(np.int32), self._mask_id)

    def _with_slots(self, ids, labels, row, place):
        shape = len(ids), self._predictions
        counts = np.bincount(row, minlength=len(ids))
        slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions, labels_of = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        weights = np.zeros(shape, np.float32)
        positions[row, slot] = place
        labels_of[row, slot] = labels
        weights[row, slot] = 1.0
        return Masked(ids, positions, labels_of, weights)


def choose(units, order, sizes, budget):
    """Chooses runs of units, one anchor of each row after another.

    Args:
      units: the `MaskUnits`.
      order, sizes: the result of `ArrayMasking.anchors`.
      budget: int [B], the most tokens to choose in each row.

    Returns:
      int64 [B, U], for each unit the anchor of the run that it was chosen with, or -1.
    """
    anchor_of = np.full(order.shape, -1)
    chosen = np.zeros(len(order), np.int64)
    longest = int(sizes.max(initial=1))
    row = np.flatnonzero(units.counts > 0)
    for turn in range(order.shape[1]):
        anchor = order[row, turn]
        size = sizes[row, anchor]
        tokens = units.ends[row, anchor + size - 1] - units.starts[row, anchor]
        fits = chosen[row] + tokens <= budget[row]
        for step in range(longest):
            inside = step < size
            fits[inside] &= anchor_of[row[inside], anchor[inside] + step] < 0
        taken, first = row[fits], anchor[fits]
        chosen[taken] += tokens[fits]
        for step in range(longest):
            inside = step < size[fits]
            anchor_of[taken[inside], first[inside] + step] = first[inside]
        row = row[(chosen[row] < budget[row]) & (turn + 1 < units.counts[row])]
        if not len(row):
            break
    return anchor_of


class MaskUnits(NamedTuple):
    """The units of rows; a row has at most U units, and the values after its last are meaningless.

    Attributes:
      counts: int64 [B], the number of units in each row.
      numbers: int64 [1, U], 0 to U - 1.
      starts, ends: int64 [B, U]; unit u covers the places [start, end) of its row.
      left: int64 [B, U], the number of units from this one to the end of its segment.
    """

    counts: np.ndarray
    numbers: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    left: np.ndarray

    @classmethod
    def of(cls, rows, of_words):
        """Returns the units of `PackedRows`: words if `of_words`, else tokens."""
        begins = rows.word_starts & rows.is_text if of_words else rows.is_text
        counts = np.count_nonzero(begins, axis=1)
        shape = len(counts), max(1, int(counts.max(initial=0)))
        # A unit ends where the next unit or a special token begins: [SEP] follows every text.
        borders = np.flatnonzero(begins | ~rows.is_text)
        is_unit = begins.reshape(-1)[borders]
        unit, special = np.flatnonzero(is_unit), np.flatnonzero(~is_unit)
        # The units of a segment are contiguous, and its last unit ends at a special token.
        left = special[np.searchsorted(special, unit)] - unit
        row_start = np.repeat(np.arange(shape[0]) * begins.shape[1], counts)
        shift = np.repeat(np.arange(shape[0]) * shape[1] - (np.cumsum(counts) - counts), counts)
        where = np.arange(len(unit)) + shift
        arrays = []
        for values in (borders[unit] - row_start, borders[unit + 1] - row_start, left):
            array = np.zeros(shape, np.int64)
            array.reshape(-1)[where] = values
            arrays.append(array)
        return cls(counts, np.arange(shape[1])[None], *arrays)
