"""What to do when the memory of a device or of the process is not enough."""

import contextlib
import ctypes
import sys

import tensorflow as tf

from nezha_tf.util.errors import UserError, first_line


@contextlib.contextmanager
def with_advice(advice):
    """In the block, turns TensorFlow's error of full memory into a `UserError` with an advice."""
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise fault(error, advice) from error


def fault(error, advice):
    """Returns the `UserError` for a `tf.errors.ResourceExhaustedError`."""
    return UserError(f"out of memory ({first_line(error)}); {advice}")


def give_back():
    """Gives freed memory back to the system, where the C library is glibc.

    XLA's compiler allocates and frees up to a gigabyte in small blocks, which glibc keeps for later
    ones (malloc_trim(3)). The buffers of a step are large, so they do not use it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
