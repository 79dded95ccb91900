"""How fast a device multiplies matrices, which bounds the speed of a training step."""

import time

import tensorflow as tf

# Only products that take this many seconds show the rate. On two cores, those of 1 ms showed three
# fifths of it, and those of 7 ms three quarters.
_ENOUGH = 2e-2
_TIMES = 3


def product_rate(kind, dtype):
    """Measures products of two square matrices, on the first device of a kind.

    The matrices grow until a product takes long enough; altogether this is 0.3 s on two cores.

    Args:
      kind: "CPU" or "GPU".
      dtype: TensorFlow dtype of the matrices.

    Returns:
      FLOP/s of the fastest of some products, which other work disturbs least.
    """
    side = 256
    with tf.device(f"/{kind}:0"):
        while True:
            side *= 2
            matrix = tf.ones((side, side), dtype)
            seconds = min(_seconds(matrix) for _ in range(_TIMES))
            if seconds >= _ENOUGH:
                return 2 * side**3 / seconds


def _seconds(matrix):
    started = time.perf_counter()
    float(tf.linalg.matmul(matrix, matrix)[0, 0])  # A GPU's product has ended when it is read.
    return time.perf_counter() - started
