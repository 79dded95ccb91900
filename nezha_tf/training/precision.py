"""The dtype of the arithmetic: the fastest one on these devices, and float16's loss scale."""

import dataclasses

import tensorflow as tf

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.training import devices, flag_history
from nezha_tf.training.settings import PRECISIONS
from nezha_tf.training.throughput import product_rate
from nezha_tf.util import console
from nezha_tf.util.errors import UserError

# A step has more than products, so products must gain this much for a step to gain.
LEAST_GAIN = 1.5
# Factors of the measured rates before they are compared. bfloat16 needs no loss scale, so it is
# taken even if it is slower by up to a fifth.
_WORTH = {"mixed_bfloat16": 1.25, "mixed_float16": 1.0}


def with_precision(settings, strategy, folders):
    """Returns the settings of a run with a precision in place of "auto", and says which.

    A run that goes on keeps its precision: what is measured again may be nearly as fast.

    Args:
      settings: `RunSettings`.
      strategy: the `tf.distribute.Strategy`.
      folders: sequence of the folders of the run, or of the runs of a sweep.

    Raises:
      UserError: the workers would choose differently.
    """
    if settings.precision != "auto":
        return settings
    kind, before = devices.kind(strategy), _begun_with(folders) if settings.do_train else None
    rates = {} if before or kind == "TPU" else _rates(kind)
    precision = before or fastest(kind, rates)
    if not devices.agree_on(strategy, PRECISIONS.index(precision)):
        raise UserError(
            f"the workers would choose different arithmetic (this one {precision}); pass "
            "--precision=float32, mixed_bfloat16 or mixed_float16 to all of them"
        )
    if devices.is_chief(strategy):
        shown = ", ".join(f"{name} {rate / 1e12:.3g}" for name, rate in rates.items())
        shown = "as before" if before else shown and f"TFLOP/s of products: {shown}"
        console.tell(f"precision {precision}" + (f" ({shown})" if shown else ""))
    return dataclasses.replace(settings, precision=precision)


def _begun_with(folders):
    """Returns the precision of the first folder that has checkpoints; None: there is no such."""
    begun = next((folder for folder in folders if RunCheckpoints(folder, {}).steps()), None)
    precision = flag_history.last_flags(begun).get("--precision") if begun else None
    return precision if precision in PRECISIONS else None


def fastest(kind, rates):
    """Returns the precision that is fastest on a kind of device.

    Args:
      kind: "CPU", "GPU" or "TPU".
      rates: dict of precision to the `product_rate`, empty for a TPU.
    """
    if kind == "TPU":
        return "mixed_bfloat16"
    needed = LEAST_GAIN * rates["float32"]
    fast = [name for name in _WORTH if rates.get(name, 0) >= needed]
    return max(fast, key=lambda name: rates[name] * _WORTH[name], default="float32")


def _rates(kind):
    """Returns {precision: rate of products} of those that a kind of device may take."""
    dtypes = {"float32": tf.float32, "mixed_bfloat16": tf.bfloat16}
    if kind == "GPU":
        dtypes["mixed_float16"] = tf.float16
    return {name: product_rate(kind, dtype) for name, dtype in dtypes.items()}
