"""A TensorFlow that spends less on graphs, for tests."""


def make_quick():
    """Turns off what takes long for each graph and changes no result; call it before first use.

    Grappler takes half of a graph's first call. It may change the rounding, so a test compares bits
    only between programs that all run with it, or all without. For each operation TensorFlow notes
    the whole stack of Python, which only its messages show.
    """
    import tensorflow as tf
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.util import tf_stack

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    tf_stack.extract_stack = lambda stacklevel=1: None
    pywrap_tf_session.TF_SetOpStackTrace = lambda operation, stack: None
