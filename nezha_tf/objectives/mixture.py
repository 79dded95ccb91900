"""Several objectives in one stream of examples: the value of --objectives as one object."""

import functools

import numpy as np
import tensorflow as tf
from keras import ops

from nezha_tf.data import schema
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.objectives.losses import weighted
from nezha_tf.objectives.objective import Transform
from nezha_tf.objectives.table import OBJECTIVES, objective_named
from nezha_tf.objectives.terms import TokenLoss
from nezha_tf.util.errors import UserError

# The index, from 0, of the objective that an example is for.
OBJECTIVE_IDS = schema.Feature("objective_ids", np.int64, 1)
_HASHED = 2**31


class ObjectiveMixture:
    """One objective of the table, or several that share a stream of examples.

    `objectives` is a dict of name to `Objective`, in the order of the text.
    """

    def __init__(self, shares, source=""):
        """Args:
        shares: dict of objective (a key of `OBJECTIVES`) to its share, in any unit.
        source: the user's flag and its value, for messages.
        """
        self.objectives = {name: OBJECTIVES[name] for name in shares}
        self._shares = list(shares.values())
        self._source = source

    @classmethod
    def from_text(cls, text, where="--objectives"):
        """Parses "bidirectional:2,seq2seq:1": names and shares; the default share is 1.

        `where` is the flag or key with the text. A `UserError` says if an objective is unknown or
        repeated, or a share is not a number above 0.
        """
        source = f"{where}={text}"
        shares = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, share = part.partition(":")
            objective_named(name, source)
            if name in shares:
                raise UserError(f"{source}: {name} is named twice; name it once with its share")
            shares[name] = _share(share or "1", source)
        if not shares:
            raise UserError(f"{source} names no objective; they are {', '.join(OBJECTIVES)}")
        return cls(shares, source)

    @property
    def first(self):
        """The name of its first objective in the table's order, which pictures of the model use."""
        return next(name for name in OBJECTIVES if name in self.objectives)

    @property
    def segment_ids(self):
        """All segment ids in its examples, a rising list."""
        return sorted({n for each in self.objectives.values() for n in each.segment_ids})

    @property
    def model(self):
        """The class of the model with the heads of all objectives; `UserError`: there is none."""
        kinds = [objective.model for objective in self.objectives.values()]
        largest = tuple(
            kind
            for kind in dict.fromkeys(kinds)
            if not any(issubclass(other, kind) for other in kinds if other is not kind)
        )
        if len(largest) == 1:
            return largest[0]
        if all(issubclass(kind, NezhaForPreTraining) for kind in largest):
            return _joined_model(largest)
        names = ", ".join(sorted({kind.__name__ for kind in kinds}))
        raise UserError(f"{self._source}: no model fits all of these ({names}); use separate runs")

    @property
    def best_metric(self):
        """The held-out loss that chooses the best checkpoint: `loss`, or what an objective says."""
        names = (objective.best_metric for objective in self.objectives.values())
        return next((name for name in names if name != "loss"), "loss")

    def features(self, examples):
        """Returns the features of the records that the objectives need."""
        parts = [objective.begins_with(examples) for objective in self.objectives.values()]
        return tuple(dict.fromkeys(feature for part in parts for feature in part))

    def transforms(self, examples):
        """Returns the `Transform`s of the reader, a tuple; see `Objective.transforms`."""
        chains = [objective.transforms(examples) for objective in self.objectives.values()]
        if len(chains) == 1:
            return chains[0]
        return (MixtureTransform(self.features(examples), self._shares, chains),)

    def lengths(self, examples):
        """Returns the `schema.Lengths` of its batches."""
        lengths = [objective.lengths(examples) for objective in self.objectives.values()]
        return schema.Lengths(*map(max, zip(*lengths, strict=True)))

    def loss(self, of_pairs=True, label_smoothing=0.0):
        """Returns the loss of its batches; see `Objective.loss`."""
        losses = {
            name: each.loss(of_pairs, label_smoothing) for name, each in self.objectives.items()
        }
        [first, *others] = losses.values()
        return MixtureLoss(losses, label_smoothing) if others else first


@functools.cache
def _joined_model(classes):
    """Returns a class with the parts that models have beside those of `NezhaForPreTraining`.

    Their order does not matter: each calls `super()` for the others.
    """
    return type("And".join(kind.__name__ for kind in classes), classes, {})


def _share(share, source):
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise UserError(f"{source}: the share {share!r} is not a number above 0")
    return value


class MixtureTransform(Transform):
    """Draws an objective for each example, and applies its transforms.

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
        batch.
        """
        keys = tf.strings.join([str(seed), "/", tf.strings.as_string(numbers)])
        hashed = tf.strings.to_hash_bucket_fast(keys, _HASHED)
        share = (tf.cast(hashed, tf.float64) + 0.5) / _HASHED
        drawn = tf.searchsorted(self._ends, share, side="right")
        return tf.minimum(drawn, len(self._ends) - 1)  # The last end may lie below 1 by rounding.


def _changed(batch, numbers, seed, drawn, chains):
    """Applies the transforms of its objective to each example.

    `drawn`, int32 [B], are keys of `chains`, a dict of objective to its transforms that are not
    applied yet; the other arguments are those of `Transform.__call__`.
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
        return _in_place(parts, rows)
    [(first, rests)] = by_first.items()
    if first is None:
        return dict(batch)
    return _changed(first(batch, numbers, seed), numbers, seed, drawn, rests)


def _rows_of(drawn, objectives):
    is_own = tf.reduce_any(drawn[:, None] == tf.constant(list(objectives)), axis=1)
    return tf.where(is_own)[:, 0]


def _in_place(parts, rows):
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


class MixtureLoss(TokenLoss):
    """The joint loss of several objectives (UniLM, arXiv 1905.03197 §2.3).

    `objective_ids`, int [B, 1], says which objective an example is for. A term that several
    objectives have is one mean over all their examples. It is also reported for each of these
    objectives, as NAME_loss/OBJECTIVE and NAME_accuracy/OBJECTIVE, without label smoothing.
    """

    def __init__(self, losses, label_smoothing=0.0):
        """`losses` is a dict of objective to its `TokenLoss`, in the order of `objective_ids`."""
        self._losses = losses
        terms = dict.fromkeys(term for loss in losses.values() for term in loss.terms)
        has_query_stream = any(loss.has_query_stream for loss in losses.values())
        super().__init__(self._ranks, terms, label_smoothing, has_query_stream)

    def weights(self, term, batch):
        weights, having = term.weights(batch), self._having(term)
        if len(having) == len(self._losses):
            return weights
        return weights * self._are_of(having, batch, weights)

    def metrics(self, outputs, batch):
        metrics = super().metrics(outputs, batch)
        for term in (term for term in self.terms if len(self._having(term)) > 1):
            losses, right = term.values(outputs, batch), term.hits(outputs, batch)
            for objective in self._having(term):
                weights = term.weights(batch)
                weights = weights * self._are_of([objective], batch, weights)
                loss = weighted(losses, weights, term.epsilon)
                metrics[f"{term.name}_loss/{objective}"] = loss
                metrics[f"{term.name}_accuracy/{objective}"] = weighted(right, weights)
        return metrics

    def reads_query_stream(self, batch):
        names = [name for name, loss in self._losses.items() if loss.has_query_stream]
        return self._are_of(names, batch, batch["objective_ids"]) > 0

    def _having(self, term):
        return [name for name, loss in self._losses.items() if term in loss.terms]

    def _are_of(self, objectives, batch, like):
        """Returns 1 for examples of some objectives, else 0: float32, with the axes of `like`."""
        places = [place for place, name in enumerate(self._losses) if name in objectives]
        is_of = ops.any(ops.equal(batch["objective_ids"], ops.array(places, "int32")), axis=1)
        axes = tuple(range(1, len(like.shape)))
        return ops.cast(ops.expand_dims(is_of, axes) if axes else is_of, "float32")

    def _ranks(self, batch):
        ranks = ops.zeros_like(batch["input_mask"])
        for place, loss in enumerate(self._losses.values()):
            ranks = ops.where(batch["objective_ids"] == place, loss.ranks(batch), ranks)
        return ranks
