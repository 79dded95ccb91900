"""Adam with decoupled weight decay, as BERT has it."""

import keras
from keras import ops

from nezha_tf.optimization.base import MomentOptimizer


@keras.saving.register_keras_serializable("nezha_tf")
class AdamWeightDecay(MomentOptimizer):
    """`AdamWeightDecayOptimizer` of BERT's optimization.py: no correction of bias.

    Arguments as for `Lamb`, without `variant`. Gradients come already summed and clipped.
    """

    slot_names = ("adam_m", "adam_v")

    def __init__(self, learning_rate=1e-4, name="adam_weight_decay", **kwargs):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)

    def _step(self, weights, m, v, decay):
        return m / (ops.sqrt(v) + self.epsilon) + decay * weights, ops.ones((), weights.dtype)
