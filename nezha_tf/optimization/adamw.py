"""Adam with decoupled weight decay: BERT's variant and the paper's variant."""

from typing import Any

import keras
from keras import ops

from nezha_tf.optimization.base import MomentOptimizer


@keras.saving.register_keras_serializable("nezha_tf")
class AdamWeightDecay(MomentOptimizer):
    """Adam with weight decay that is not part of the gradient.

    `variant="bert"` is `AdamWeightDecayOptimizer` of BERT's optimization.py, without bias
    correction. With the usual betas, step s (from 1) is therefore longer by the factor
    (1 - 0.9^s) / sqrt(1 - 0.999^s): 3 at the first step, 6 at the 10th, 2 at the 300th.

    `variant="paper"` corrects both moments (Loshchilov and Hutter, arXiv 1711.05101, Algorithm 2).
    """

    variants = ("bert", "paper")
    slot_names = {"m": "adam_m", "v": "adam_v"}  # noqa: RUF012

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-4,
        variant: str = "bert",
        name: str = "adam_weight_decay",
        **kwargs: Any,
    ):
        super().__init__(learning_rate, variant, name=name, **kwargs)

    def _step(self, weights, gradient, m, v, count, decay):
        if self.variant == "paper":
            m, v = self._corrected(m, v, count)
        return m / (ops.sqrt(v) + self.epsilon) + decay * weights, ops.ones((), weights.dtype)
