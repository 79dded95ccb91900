"""The dtype of the arithmetic: the fastest one on these devices, and float16's loss scale."""

import dataclasses

import tensorflow as tf

from nezha_tf.checkpoints.run_checkpoints import RunCheckpoints
from nezha_tf.training import devices, flag_history
from nezha_tf.training.product_rates import product_rate
from nezha_tf.training.settings import PRECISIONS
from nezha_tf.util.errors import UserError


class DynamicLossScale:
    """Keeps float16 gradients within range (Micikevicius et al., arXiv 1710.03740 §3.2).

    The scale grows after `growth_steps` good steps in a row and backs off at each step whose
    gradients are not finite, down to 1. The original backs off only after two such steps.
    """

    def __init__(
        self,
        initial_scale,
        growth_steps,
        growth_factor=2.0,
        backoff_factor=0.5,
    ):
        """Raises a `UserError` if scale or growth is below 1, or the backoff is not in (0, 1)."""
        if initial_scale < 1 or growth_factor < 1 or not 0 < backoff_factor < 1:
            raise UserError(
                f"--initial_loss_scale={initial_scale:g} and --loss_scale_growth_factor="
                f"{growth_factor:g} must be at least 1, and --loss_scale_backoff_factor="
                f"{backoff_factor:g} between 0 and 1"
            )
        self._growth_steps = growth_steps
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self.scale = tf.Variable(initial_scale, trainable=False, dtype=tf.float32)
        self._good_steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    def update(self, is_finite):
        """Updates the scale after a step; `is_finite` is a bool scalar."""
        good_steps = tf.where(is_finite, self._good_steps + 1, 0)
        grows = good_steps >= self._growth_steps
        good = tf.where(grows, self._growth_factor, 1.0)
        factor = tf.where(is_finite, good, self._backoff_factor)
        self.scale.assign(tf.maximum(self.scale * factor, 1.0))
        self._good_steps.assign(tf.where(grows, tf.zeros_like(good_steps), good_steps))

    def state(self):
        """Returns a dict of names in a checkpoint to the variables."""
        return {"nezha_tf/loss_scale": self.scale, "nezha_tf/loss_scale_steps": self._good_steps}


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
        print(f"precision {precision}" + (f" ({shown})" if shown else ""))
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
