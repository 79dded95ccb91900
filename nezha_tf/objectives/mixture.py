"""A mixture of objectives: the value of --objectives as one object for the whole run."""

import functools

from nezha_tf.data import schema
from nezha_tf.modeling.pretraining import NezhaForPreTraining
from nezha_tf.objectives.mixture_loss import MixtureLoss
from nezha_tf.objectives.mixture_transform import Mixture
from nezha_tf.objectives.table import OBJECTIVES, objective_named
from nezha_tf.util.errors import UserError


class ObjectiveMixture:
    """One objective of the table, or several that share a stream of examples.

    Attributes:
      objectives: dict of name to `Objective`, in the order of the text.
    """

    def __init__(self, shares, said=""):
        """Args:
        shares: dict of objective (a key of `OBJECTIVES`) to its share, in any unit.
        said: the user's flag and its value, for messages.
        """
        self.objectives = {name: OBJECTIVES[name] for name in shares}
        self._shares = list(shares.values())
        self._said = said

    @classmethod
    def from_text(cls, text, where="--objectives"):
        """Parses "bidirectional:2,seq2seq:1": names and shares; the default share is 1.

        Args:
          text: the text.
          where: the flag or key with the text, for messages.

        Raises:
          UserError: an objective is unknown or repeated, or a share is not a number above 0.
        """
        said = f"{where}={text}"
        shares = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, share = part.partition(":")
            objective_named(name, said)
            if name in shares:
                raise UserError(f"{said}: {name} is named twice; name it once with its share")
            shares[name] = _share(share or "1", said)
        if not shares:
            raise UserError(f"{said} names no objective; they are {', '.join(OBJECTIVES)}")
        return cls(shares, said)

    @property
    def first(self):
        """The name of its first objective in the table's order, which pictures of the model use."""
        return next(name for name in OBJECTIVES if name in self.objectives)

    @property
    def segment_ids(self):
        """All segment ids in its examples, a rising list."""
        found = {number for each in self.objectives.values() for number in each.segment_ids}
        return sorted(found)

    @property
    def model(self):
        """The class of the model with the heads of all objectives.

        Raises:
          UserError: there is no such class.
        """
        kinds = [objective.model for objective in self.objectives.values()]
        largest = tuple(
            kind
            for kind in dict.fromkeys(kinds)
            if not any(issubclass(other, kind) for other in kinds if other is not kind)
        )
        if len(largest) == 1:
            return largest[0]
        if all(issubclass(kind, NezhaForPreTraining) for kind in largest):
            return _joined(largest)
        names = ", ".join(sorted({kind.__name__ for kind in kinds}))
        raise UserError(f"{self._said}: no model fits all of these ({names}); use separate runs")

    @property
    def best_metric(self):
        """The held-out loss that chooses the best checkpoint: `loss`, or what an objective says."""
        names = (objective.best_metric for objective in self.objectives.values())
        return next((name for name in names if name != "loss"), "loss")

    def features(self, examples):
        """Returns the features of the records that the objectives need together, a tuple.

        Args:
          examples: the `Examples`.
        """
        parts = [objective.begins_with(examples) for objective in self.objectives.values()]
        return tuple(dict.fromkeys(feature for part in parts for feature in part))

    def transforms(self, examples):
        """Returns the `Transform`s of the reader, a tuple; `examples` are the `Examples`.

        Raises:
          UserError: see `Objective.transforms`.
        """
        chains = [objective.transforms(examples) for objective in self.objectives.values()]
        if len(chains) == 1:
            return chains[0]
        return (Mixture(self.features(examples), self._shares, chains),)

    def lengths(self, examples):
        """Returns the `schema.Lengths` of its batches; `examples` are the `Examples`."""
        found = [objective.lengths(examples) for objective in self.objectives.values()]
        return schema.Lengths(*map(max, zip(*found, strict=True)))

    def loss(self, of_pairs, label_smoothing=0.0):
        """Returns the loss of its batches; the arguments are those of `Objective.loss`."""
        losses = {
            name: each.loss(of_pairs, label_smoothing) for name, each in self.objectives.items()
        }
        [first, *others] = losses.values()
        return MixtureLoss(losses, label_smoothing) if others else first


@functools.cache
def _joined(kinds):
    """Returns a class with the parts of several models, in any order.

    Each has its parts beside those of `NezhaForPreTraining`, and calls `super()` for the others.
    """
    return type("And".join(kind.__name__ for kind in kinds), kinds, {})


def _share(share, said):
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise UserError(f"{said}: the share {share!r} is not a number above 0")
    return value
