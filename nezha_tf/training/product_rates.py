"""How fast a device multiplies matrices, which bounds the speed of a training step."""

import os
import time

import tensorflow as tf

from nezha_tf.util.cores import available_cores

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
    side, threads = 256, _threads() if kind == "CPU" else None
    with tf.device(f"/{kind}:0"):
        while True:
            side *= 2
            matrix = tf.ones((side, side), dtype)
            seconds = min(_seconds(matrix, threads) for _ in range(_TIMES))
            if seconds >= _ENOUGH:
                return 2 * side**3 / seconds


def _seconds(matrix, threads):
    """Returns how long a product takes on cores that do nothing else; `threads` None: a GPU.

    Where other programs want the same cores, the clock goes on while this one waits. On two cores
    with a load of five, products seemed a seventh as fast by the clock as alone.
    """
    started, worked = time.perf_counter(), time.process_time()
    float(tf.linalg.matmul(matrix, matrix)[0, 0])  # A GPU's product has ended when it is read.
    seconds, of_all = time.perf_counter() - started, time.process_time() - worked
    return min(seconds, of_all / threads) if threads else seconds


def _threads():
    """Returns the number of threads with which TensorFlow multiplies on the processor."""
    given = tf.config.threading.get_intra_op_parallelism_threads()
    given = given or int(os.environ.get("TF_NUM_INTRAOP_THREADS") or 0)
    return min(given or available_cores(), available_cores())
