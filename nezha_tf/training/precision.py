"""The dynamic loss scale that float16 needs."""

import tensorflow as tf

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
