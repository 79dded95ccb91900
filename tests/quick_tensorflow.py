"""A TensorFlow that spends less on graphs, for tests."""

import random


def make_quick():
    """Turns off what takes long for each graph and changes no result; call it before first use.

    Grappler takes half of a graph's first call. It may change the rounding, so a test compares bits
    only between programs that all run with it, or all without. For each operation TensorFlow notes
    the whole stack of Python, which only its messages show. It makes a kernel for each new name of
    a variable, and throws all kernels away where a seed is set: they would remember how far the
    seeds of `tf.random.normal` and its like are, which we do not use.
    """
    import tensorflow as tf
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_resource_variable_ops
    from tensorflow.python.util import tf_stack

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    tf_stack.extract_stack = lambda stacklevel=1: None
    pywrap_tf_session.TF_SetOpStackTrace = lambda operation, stack: None
    make_handle = gen_resource_variable_ops.var_handle_op
    gen_resource_variable_ops.var_handle_op = lambda **named: make_handle(
        **{**named, "debug_name": ""}
    )
    context.Context._set_global_seed = set_global_seed


def set_global_seed(self, seed):
    self._seed, self._rng = seed, random.Random(seed)
