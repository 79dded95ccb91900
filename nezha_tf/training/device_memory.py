"""Tells what to do when the memory of a device is not enough."""

import contextlib

import tensorflow as tf

from nezha_tf.util.errors import UserError, first_line


@contextlib.contextmanager
def told(advice):
    """In the block, turns TensorFlow's error of full memory into a `UserError` with an advice."""
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise fault(error, advice) from error


def fault(error, advice):
    """Returns the `UserError` for a `tf.errors.ResourceExhaustedError`."""
    return UserError(f"out of memory ({first_line(error)}); {advice}")
