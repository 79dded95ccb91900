"""Several objectives in one stream: draws one for each example and applies its transforms."""

import numpy as np
import tensorflow as tf

from nezha_tf.data.schema import Feature

# The index, from 0, of the objective that an example is for.
OBJECTIVE_IDS = Feature("objective_ids", np.int64, 1)
_HASHED = 2**31


class Mixture:
    """Draws an objective for each example, and applies its transforms. A `transforms.Transform`.

    What is drawn for an example depends only on the seed and on its number in the stream. The
    result has the drawn objectives as `objective_ids`, int32 [B, 1]. Features that only some
    objectives have are zero in the rows of the others, and shorter ones are padded with zeros, so
    that the shapes are static.
    """

    def __init__(self, features, shares, chains):
        """Args:
        features: tuple of `schema.Feature`, the features of the batch.
        shares: list of the objectives' shares, in any unit.
        chains: for each objective a tuple of the transforms that make its examples. Transforms
          that several chains begin with are applied once, to the examples of all these chains.
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
        # The number of rows is static, although that of each objective is not.
        size = numbers.shape[0]
        return {n: tf.ensure_shape(v, (size, *v.shape[1:])) for n, v in changed.items()}

    def fault_of(self, record):
        transforms = dict.fromkeys(part for chain in self._chains.values() for part in chain)
        return next(filter(None, (part.fault_of(record) for part in transforms)), None)

    def draw(self, numbers, seed):
        """Returns int32 [B], the index of the objective that is drawn for each example.

        The draw is a hash of the example's number; that of a random generator would depend on the
        batch that the example is in.
        """
        keys = tf.strings.join([str(seed), "/", tf.strings.as_string(numbers)])
        hashed = tf.strings.to_hash_bucket_fast(keys, _HASHED)
        share = (tf.cast(hashed, tf.float64) + 0.5) / _HASHED
        drawn = tf.searchsorted(self._ends, share, side="right")
        return tf.minimum(drawn, len(self._ends) - 1)  # The last end may lie below 1 by rounding.


def _changed(batch, numbers, seed, drawn, chains):
    """Applies the transforms of its objective to each example.

    Args:
      batch, numbers, seed: as in `Transform.__call__`.
      drawn: int32 [B], keys of `chains`.
      chains: dict of objective to the tuple of its transforms that are not applied yet.
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
    """Returns int64 [n], the rows whose objective is one of `objectives`."""
    is_own = tf.reduce_any(drawn[:, None] == tf.constant(list(objectives)), axis=1)
    return tf.where(is_own)[:, 0]


def _joined(parts, rows):
    """Joins parts of a batch; `rows` has, for each part, the int64 [n] places of its examples."""
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
