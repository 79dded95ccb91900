"""LAMB: the variant of NEZHA's source, and the variant of the paper's usual implementation."""

from typing import Any

import keras
from keras import ops

from nezha_tf.optimization.base import MomentOptimizer

# Bound of the trust ratio in NEZHA's source.
MAX_TRUST_RATIO = 10.0


@keras.saving.register_keras_serializable("nezha_tf")
class Lamb(MomentOptimizer):
    """Layer-wise adaptive moments for large batches (You et al., arXiv 1904.00962, Algorithm 2).

    `variant="nezha"` follows the LAMBOptimizer of NEZHA's optimization.py with its peculiarities:
    both moments are corrected for bias; the denominator of the trust ratio is the norm of
    m / sqrt(v + epsilon) + decay * w, with decay even for variables that are excluded from it;
    the step itself is m / (sqrt(v) + epsilon) [+ decay * w]; the ratio is at most 10, and it is 1
    where the weights or the gradient are 0.

    `variant="paper"` follows LAMB_Optimizer_TF: no bias correction, no bound of the ratio, and the
    same step in the trust ratio and in the update.
    """

    metrics = ("trust_ratio",)
    variants = ("nezha", "paper")
    slot_names = {"m": "lamb_m", "v": "lamb_v"}  # noqa: RUF012

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-4,
        variant: str = "nezha",
        name: str = "lamb",
        **kwargs: Any,
    ):
        """Args:
        learning_rate: a number or a Keras schedule; update s (from 0) uses schedule(s).
        variant: "nezha" or "paper".
        **kwargs: `beta_1` (0.9), `beta_2` (0.999), `epsilon` (1e-6), and those of `RunOptimizer`.
        """
        super().__init__(learning_rate, variant, name=name, **kwargs)

    def _step(self, weights, gradient, m, v, count, decay):
        if self.variant == "nezha":
            m, v = self._corrected(m, v, count)
        step = m / (ops.sqrt(v) + self.epsilon) + decay * weights
        if self.variant == "nezha":
            measured = m / ops.sqrt(v + self.epsilon) + self.weight_decay_rate * weights
            ratio = ops.minimum(_trust_ratio(weights, measured, gradient), MAX_TRUST_RATIO)
        else:
            ratio = _trust_ratio(weights, step, step)
        return step, ratio


def _trust_ratio(weights, step, tested):
    weight_norm = _norm(weights)
    both = ops.logical_and(weight_norm > 0, _norm(tested) > 0)
    return ops.where(both, weight_norm / ops.where(both, _norm(step), 1.0), 1.0)


def _norm(values):
    return ops.sqrt(ops.sum(ops.square(values)))
