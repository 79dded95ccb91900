"""The table of optimizers: one row with everything that a run must know of each.

To add one, assign a row to `OPTIMIZERS` in any module; `docs/en/extending.md` shows it.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import keras

from nezha_tf.optimization.adamw import AdamWeightDecay
from nezha_tf.optimization.base import LAYER, RunOptimizer
from nezha_tf.optimization.lamb import Lamb
from nezha_tf.util.errors import UserError

_KERAS = "keras."
# Muon is for the matrices inside the layers; embeddings and heads get AdamW.
_OUTSIDE_OF_LAYERS = f"^(?!.*{LAYER.pattern})"
# Optimizers that need more than an update of each variable, and what that is.
_UNFIT = {
    "LossScaleOptimizer": "it wraps another one; --precision=mixed_float16 scales the loss",
    "MultiOptimizer": "it wraps others",
    "Nadam": "it changes a product of all steps before it updates the variables",
    "Optimizer": "it is the base of all others",
    "ScheduleFreeAdamW": "it begins with a copy of the weights, which are not loaded yet",
}


@functools.cache
def from_keras(name, **slot_names):
    """Returns a `RunOptimizer` class of an optimizer of Keras.

    Args:
      name: its name in `keras.optimizers`, such as "Lion".
      **slot_names: the names of its slots in TF1 checkpoints, by their names in Keras; by default
        the optimizer's name in lower case, an underscore and the slot's.

    Raises:
      ValueError: Keras has no such optimizer, or it does not fit a run.
    """
    own = getattr(keras.optimizers, name, None)
    if not (isinstance(own, type) and issubclass(own, keras.optimizers.Optimizer)):
        raise ValueError(f"keras.optimizers has no optimizer {name!r}")
    if name in _UNFIT:
        raise ValueError(f"keras.optimizers.{name} does not fit a run: {_UNFIT[name]}")
    return type(name, (RunOptimizer, own), {"slot_names": slot_names})


class OptimizerRow(NamedTuple):
    """An optimizer of --optimizer.

    Attributes:
      optimizer: its class, a `RunOptimizer`, which has its slots' names and its metrics.
      options: function of the `RunSettings` that returns its further arguments, a dict.
    """

    optimizer: type[RunOptimizer]
    options: Callable = lambda settings: {}


OPTIMIZERS = {
    "lamb": OptimizerRow(Lamb, lambda settings: {"variant": settings.lamb_variant}),
    "adamw": OptimizerRow(AdamWeightDecay, lambda settings: {"variant": settings.adamw_variant}),
    # Jordan 2024, with the scale of Moonlight (arXiv 2502.16982 §2.2), so that AdamW's rates fit.
    "muon": OptimizerRow(
        from_keras("Muon", momentum="muon_m", velocity="muon_v"),
        lambda settings: {
            "exclude_layers": [_OUTSIDE_OF_LAYERS],
            "weight_decay": None,
            "adam_weight_decay": None,
        },
    ),
    # Chen et al., arXiv 2302.06675: a tenth to a third of AdamW's rate, and more decay.
    "lion": OptimizerRow(from_keras("Lion", momentum="lion_m")),
    # Shazeer and Stern, arXiv 1804.04235: the rate is relative to the weights.
    "adafactor": OptimizerRow(
        from_keras("Adafactor", velocity="adafactor_v"), lambda settings: {"relative_step": False}
    ),
}


def row_of(name):
    """Returns the `OptimizerRow` of --optimizer: a key of `OPTIMIZERS`, or keras.NAME.

    Raises:
      UserError: there is no such optimizer, or it does not fit a run.
    """
    if name in OPTIMIZERS:
        return OPTIMIZERS[name]
    try:
        if name.startswith(_KERAS):
            return OptimizerRow(from_keras(name.removeprefix(_KERAS)))
    except ValueError as error:
        raise UserError(f"--optimizer={name}: {error}") from None
    raise UserError(
        f"--optimizer={name} is unknown; there are {', '.join(OPTIMIZERS)}, and {_KERAS}NAME for "
        "an optimizer of keras.optimizers"
    )


def make_optimizer(settings, learning_rate, rate_factors=None):
    """Returns the `RunOptimizer` of the `RunSettings`, or raises as `row_of`.

    `learning_rate` is a number or a Keras schedule; see `RunOptimizer` for `rate_factors`.
    """
    row = row_of(settings.optimizer)
    return row.optimizer(
        learning_rate=learning_rate,
        weight_decay_rate=settings.weight_decay_rate,
        layer_decay=settings.layer_decay,
        rate_factors=rate_factors,
        **row.options(settings),
    )
