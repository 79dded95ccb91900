"""Several objectives in one stream: which one an example is for, and each one's own corruption."""

import numpy as np
import tensorflow as tf

from nezha_tf.data.schema import Feature

# Which of a mixture's objectives an example is for: its place, from 0.
OBJECTIVE_IDS = Feature("objective_ids", np.int64, 1)
_HASHED = 2**31


class Mixture:
    """Draws an objective for each example, and applies its transforms. A `transforms.Transform`.

    What is drawn for an example depends on the seed and on its number in the stream alone. The
    batch says what was drawn, as `objective_ids` int32 [B, 1]. Features that only some objectives
    give are zero in the rows of the others, and shorter ones are filled up with zeros, so that
    the shapes are static.
    """

    def __init__(self, features, shares, chains):
        """Args:
        features: tuple of `schema.Feature`, what the batch holds.
        shares: list of the objectives' shares, in any unit.
        chains: for each objective the transforms that make its examples, a tuple; one that
          several begin with is applied once, to the examples of all of them.
        """
        shares = np.array(shares, "float64")
        self._ends = np.cumsum(shares / shares.sum())
        self._chains = dict(enumerate(chains))
        given = [chain[-1].gives if chain else features for chain in chains]
        self.reads = features
        self.gives = (*dict.fromkeys(f for part in given for f in part), OBJECTIVE_IDS)
        self.at_once = max((t.at_once for chain in chains for t in chain), default=1)

    def __call__(self, batch, numbers, seed):
        drawn = self.draw(numbers, seed)
        changed = _changed(batch, numbers, seed, drawn, self._chains)
        changed[OBJECTIVE_IDS.name] = drawn[:, None]
        # How many rows there are is known, though not how many of each objective.
        size = numbers.shape[0]
        return {n: tf.ensure_shape(v, (size, *v.shape[1:])) for n, v in changed.items()}

    def fault_of(self, record):
        transforms = dict.fromkeys(part for chain in self._chains.values() for part in chain)
        return next(filter(None, (part.fault_of(record) for part in transforms)), None)

    def draw(self, numbers, seed):
        """Returns int32 [B], the places of the objectives that are drawn for examples.

        A hash of the numbers: a generator would give an example another number in another batch.
        """
        keys = tf.strings.join([str(seed), "/", tf.strings.as_string(numbers)])
        hashed = tf.strings.to_hash_bucket_fast(keys, _HASHED)
        share = (tf.cast(hashed, tf.float64) + 0.5) / _HASHED
        drawn = tf.searchsorted(self._ends, share, side="right")
        return tf.minimum(drawn, len(self._ends) - 1)  # The last end may lie below 1 by rounding.


def _changed(batch, numbers, seed, drawn, chains):
    """Applies to each example the transforms of what is drawn for it.

    Args:
      batch, numbers, seed: as for a transform.
      drawn: int32 [B], keys of `chains`.
      chains: dict of objective to the tuple of transforms that is left of its own.
    """
    by_first = {}
    for objective, chain in chains.items():
        by_first.setdefault(chain[0] if chain else None, {})[objective] = chain[1:]
    if len(by_first) > 1:
        rows = [_rows_of(drawn, rests) for rests in by_first.values()]
        parts = [
            _changed(
                {name: tf.gather(values, own) for name, values in batch.items()},
                tf.gather(numbers, own),
                seed,
                tf.gather(drawn, own),
                {objective: chains[objective] for objective in rests},
            )
            for own, rests in zip(rows, by_first.values(), strict=True)
        ]
        return _joined(parts, rows)
    [(first, rests)] = by_first.items()
    if first is None:
        return dict(batch)
    return _changed(first(batch, numbers, seed), numbers, seed, drawn, rests)


def _rows_of(drawn, objectives):
    """Returns int64 [n], the rows for which one of some objectives is drawn."""
    is_own = tf.reduce_any(drawn[:, None] == tf.constant(list(objectives)), axis=1)
    return tf.where(is_own)[:, 0]


def _joined(parts, rows):
    """Returns the one batch of parts: the examples at `rows`, [n] of each, in the parts' order."""
    order = tf.argsort(tf.concat(rows, axis=0))
    batch = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        like = next(part[name] for part in parts if name in part)
        length = max(part[name].shape[1] for part in parts if name in part)
        columns = [
            tf.pad(part[name], [(0, 0), (0, length - part[name].shape[1])])
            if name in part
            else tf.zeros((tf.size(own), length), like.dtype)
            for part, own in zip(parts, rows, strict=True)
        ]
        batch[name] = tf.gather(tf.concat(columns, axis=0), order)
    return batch
