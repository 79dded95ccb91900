"""The learning rate of each step: linear warmup, then decay to zero."""

import keras
from keras import ops

VARIANTS = ("nezha", "bert")


@keras.saving.register_keras_serializable("nezha_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warmup, then polynomial decay over the whole run (`create_optimizer`).

    During the warmup the rate of step s is learning_rate * s / num_warmup_steps, afterwards
    learning_rate * (1 - s / num_train_steps) ** power. The variant "nezha" scales the latter so
    that it is the full rate at the end of the warmup; in "bert" the rate drops there.
    """

    def __init__(
        self, learning_rate, num_train_steps, num_warmup_steps, variant="nezha", power=1.0
    ):
        """Args:
          learning_rate: the rate at the end of the warmup.
          num_train_steps: the step at which the rate becomes 0.
          num_warmup_steps: steps of warmup, less than `num_train_steps`; 0: no warmup.
          variant: "nezha" or "bert".
          power: exponent of the decay; 1 is linear.

        Raises:
          ValueError: the variant is unknown, or the warmup is not shorter than the run.
        """
        if variant not in VARIANTS:
            raise ValueError(f"variant must be one of {VARIANTS}, not {variant!r}")
        if not 0 <= num_warmup_steps < num_train_steps:
            raise ValueError(
                f"num_warmup_steps {num_warmup_steps} must be less than num_train_steps "
                f"{num_train_steps}"
            )
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.variant = variant
        self.power = power

    def __call__(self, step):
        """Returns the rate of a step (from 0), a float32 scalar."""
        step = ops.cast(step, "float32")
        left = 1.0 - ops.minimum(step, self.num_train_steps) / self.num_train_steps
        peak = self.learning_rate
        if self.variant == "nezha":
            peak /= (1.0 - self.num_warmup_steps / self.num_train_steps) ** self.power
        decayed = peak * ops.power(left, self.power)
        if not self.num_warmup_steps:
            return decayed
        warm = self.learning_rate * step / self.num_warmup_steps
        return ops.where(step < self.num_warmup_steps, warm, decayed)

    def get_config(self):
        names = ("learning_rate", "num_train_steps", "num_warmup_steps", "variant", "power")
        return {name: getattr(self, name) for name in names}


def warmup_linear_decay(learning_rate, num_train_steps, num_warmup_steps, variant="nezha"):
    """Returns the originals' schedule: `WarmupPolynomialDecay` with power 1."""
    return WarmupPolynomialDecay(learning_rate, num_train_steps, num_warmup_steps, variant)
