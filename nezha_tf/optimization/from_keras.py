"""The optimizers of `keras.optimizers`, with the rules of our runs."""

import functools

import keras

from nezha_tf.optimization.base import RunOptimizer

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
