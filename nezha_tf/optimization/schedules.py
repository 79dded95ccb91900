"""The learning rate of each step: linear warm-up, then decay to zero."""

import keras
from keras import ops

VARIANTS = ("nezha", "bert")


@keras.saving.register_keras_serializable("nezha_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial decay over the whole run (`create_optimizer`).

    During warm-up the rate of step s is learning_rate * s / num_warmup_steps; after it
    learning_rate * (1 - s / num_train_steps) ** power. In the variant "nezha" the latter is
    scaled up so that it meets the full rate at the end of the warm-up; in "bert" it is not,
    and the rate drops there.
    """

    def __init__(
        self, learning_rate, num_train_steps, num_warmup_steps, variant="nezha", power=1.0
    ):
        """Args:
          learning_rate: the rate at the end of the warm-up.
          num_train_steps: step at which the rate is zero.
          num_warmup_steps: steps of warm-up, less than `num_train_steps`; 0 for none.
          variant: "nezha" or "bert".
          power: exponent of the decay; 1 is linear.

        Raises:
          ValueError: an unknown variant, or a warm-up that is no shorter than the run.
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
        """Returns the rate of a step, counted from 0, as a float32 scalar."""
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
