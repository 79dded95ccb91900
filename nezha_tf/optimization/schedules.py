"""The learning rate of each step: linear warmup, then a course to the end of the run.

A schedule counts in any unit: with --train_minutes its steps are minutes.

`SCHEDULES` is the table of --schedule. To add one, assign a row to it in any module.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import keras
from keras import ops

VARIANTS = ("nezha", "bert")


class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warmup to `learning_rate`: the rate of step s (from 0) is learning_rate * s / warmup.

    A subclass says what follows, to the end of `num_train_steps`.
    """

    def __init__(self, learning_rate, num_train_steps, num_warmup_steps):
        if not 0 <= num_warmup_steps < num_train_steps:
            raise ValueError(
                f"num_warmup_steps {num_warmup_steps} must be less than num_train_steps "
                f"{num_train_steps}"
            )
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        after = self._after_warmup(ops.minimum(step, self.num_train_steps))
        if not self.num_warmup_steps:
            return after
        warm = self.learning_rate * step / self.num_warmup_steps
        return ops.where(step < self.num_warmup_steps, warm, after)

    def _after_warmup(self, step):
        """Returns the rate of a step, a float32 scalar of at most `num_train_steps`."""
        raise NotImplementedError(f"{type(self).__name__} has no _after_warmup()")

    def get_config(self):
        names = ("learning_rate", "num_train_steps", "num_warmup_steps")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable("nezha_tf")
class WarmupPolynomialDecay(WarmupSchedule):
    """Polynomial decay to 0 over the whole run (`create_optimizer` of the originals).

    The rate is learning_rate * (1 - s / num_train_steps) ** power. The variant "nezha" scales it so
    that it is the full rate at the end of the warmup; in "bert" the rate drops there.
    """

    def __init__(
        self, learning_rate, num_train_steps, num_warmup_steps, variant="nezha", power=1.0
    ):
        if variant not in VARIANTS:
            raise ValueError(f"variant must be one of {VARIANTS}, not {variant!r}")
        super().__init__(learning_rate, num_train_steps, num_warmup_steps)
        self.variant = variant
        self.power = power

    def _after_warmup(self, step):
        peak = self.learning_rate
        if self.variant == "nezha":
            peak /= (1.0 - self.num_warmup_steps / self.num_train_steps) ** self.power
        return peak * ops.power(1.0 - step / self.num_train_steps, self.power)

    def get_config(self):
        return {**super().get_config(), "variant": self.variant, "power": self.power}


@keras.saving.register_keras_serializable("nezha_tf")
class WarmupCosineDecay(WarmupSchedule):
    """Half a cosine, from the full rate to 0 (Loshchilov and Hutter, arXiv 1608.03983)."""

    def _after_warmup(self, step):
        course = (step - self.num_warmup_steps) / (self.num_train_steps - self.num_warmup_steps)
        return self.learning_rate * 0.5 * (1.0 + ops.cos(math.pi * course))


@keras.saving.register_keras_serializable("nezha_tf")
class WarmupTrapezoid(WarmupSchedule):
    """The full rate, then a linear decay to 0 (Zhai et al., arXiv 2106.04560; WSD of MiniCPM).

    `decay_proportion` is the share of all steps in which the rate decays; 0: none.
    """

    def __init__(self, learning_rate, num_train_steps, num_warmup_steps, decay_proportion=0.2):
        super().__init__(learning_rate, num_train_steps, num_warmup_steps)
        self.decay_proportion = decay_proportion

    def _after_warmup(self, step):
        steps = self.decay_proportion * self.num_train_steps
        left = (self.num_train_steps - step) / steps if steps else 1.0
        return self.learning_rate * ops.minimum(left, 1.0)

    def get_config(self):
        return {**super().get_config(), "decay_proportion": self.decay_proportion}


class ScheduleRow(NamedTuple):
    """A schedule of --schedule.

    Attributes:
      schedule: its class, a `WarmupSchedule`.
      options: function of the `RunSettings` that returns its further arguments, a dict.
    """

    schedule: type[WarmupSchedule]
    options: Callable


SCHEDULES = {
    "nezha": ScheduleRow(
        WarmupPolynomialDecay, lambda given: {"variant": "nezha", "power": given.decay_power}
    ),
    "bert": ScheduleRow(
        WarmupPolynomialDecay, lambda given: {"variant": "bert", "power": given.decay_power}
    ),
    "cosine": ScheduleRow(WarmupCosineDecay, lambda given: {}),
    "trapezoid": ScheduleRow(
        WarmupTrapezoid, lambda given: {"decay_proportion": given.decay_proportion}
    ),
    "constant": ScheduleRow(WarmupTrapezoid, lambda given: {"decay_proportion": 0.0}),
}


def make_schedule(settings, length, warmup):
    """Returns the `WarmupSchedule` of the settings.

    Args:
      settings: the `RunSettings`.
      length, warmup: of the whole run and of its warmup, both in steps or both in minutes.
    """
    row = SCHEDULES[settings.schedule]
    return row.schedule(settings.learning_rate, length, warmup, **row.options(settings))


def warmup_linear_decay(
    learning_rate: float, num_train_steps: int, num_warmup_steps: int, variant: str = "nezha"
) -> WarmupPolynomialDecay:
    """Returns the originals' schedule: `WarmupPolynomialDecay` with power 1."""
    return WarmupPolynomialDecay(learning_rate, num_train_steps, num_warmup_steps, variant)
