"""The dynamic loss scale that float16 needs."""

import math

import tensorflow as tf


class DynamicLossScale(tf.Module):
    """Keeps float16 gradients within range (Micikevicius et al., arXiv 1710.03740 §3.2).

    The scale doubles after `growth_interval` good steps in a row and halves at each step
    whose gradients are not finite, down to 1. It starts at 2**32 and grows each 1,000 steps, as in
    NEZHA's optimization.py; the original waits for two bad steps before it halves.
    """

    def __init__(self, initial_scale=2.0**32, growth_interval=1000):
        super().__init__(name="loss_scale")
        self.growth_interval = growth_interval
        self.scale = tf.Variable(initial_scale, trainable=False, dtype=tf.float32)
        self.good_steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    def update(self, is_finite):
        """Takes note of one step; `is_finite` is a bool scalar."""
        good_steps = tf.where(is_finite, self.good_steps + 1, 0)
        grows = good_steps >= self.growth_interval
        factor = tf.where(is_finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.scale.assign(tf.maximum(self.scale * factor, 1.0))
        self.good_steps.assign(tf.where(grows, tf.zeros_like(good_steps), good_steps))

    def is_exhausted(self, loss):
        """Whether a lower scale cannot mend a bad step: the loss is lost, or the scale is 1."""
        return not math.isfinite(float(loss)) or float(self.scale) <= 1.0

    def variables_by_name(self):
        """Returns the variables under their names in a checkpoint."""
        return {"nezha_tf/loss_scale": self.scale, "nezha_tf/loss_scale_steps": self.good_steps}
