"""What XLA compiles of a step: all of it, the parts between its products, or nothing."""

import tensorflow as tf

from nezha_tf.modeling.compiled_parts import compiled_parts
from nezha_tf.training import devices


def compiled(function, jit_compile, model, strategy):
    """Returns the `tf.function` of a part of a step that computes with the model.

    Args:
      function: function of tensors.
      jit_compile: whether XLA compiles it. With bfloat16 on a processor it compiles only the parts
        between the products (see `compiled_parts`), whole otherwise.
      model: a Keras model.
      strategy: the `tf.distribute.Strategy` in whose scope the model was made.
    """
    if not jit_compile:
        return tf.function(function, autograph=False)
    if model.compute_dtype == "bfloat16" and devices.kind(strategy) == "CPU":
        return tf.function(compiled_parts()(function), autograph=False)
    return tf.function(function, jit_compile=True, autograph=False)
