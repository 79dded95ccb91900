"""How fast a run is: its rates, the arithmetic that it needs, and what its devices can do."""

import os
import time

import tensorflow as tf

from nezha_tf.modeling.flops import training_flops
from nezha_tf.training import devices
from nezha_tf.util.cores import available_cores


class Throughput:
    """Measures rates since its creation or the last restart, without pauses."""

    def __init__(self, flops_per_place, peak_flops=None):
        """Args:
        flops_per_place: the result of `training_flops` over the length of an example. A shorter
          batch has that much less arithmetic; that its products in attention have even less is
          left out.
        peak_flops: peak FLOP/s of all devices together, or None. A run that is faster shows a
          higher peak.
        """
        self._flops_per_place = flops_per_place
        self._peak_flops = peak_flops
        self.restart()

    def add(self, examples, tokens, places):
        """Counts what the `StepReport` of steps, with skipped ones, says under these names."""
        self._examples += examples
        self._tokens += tokens
        self._places += places

    def leave_out(self, seconds):
        """Excludes the time of a pause (a save or an evaluation)."""
        self._started += seconds

    def restart(self):
        """Starts the measurement again."""
        self._examples = self._tokens = self._places = 0
        self._started = time.monotonic()

    def rates(self):
        """Returns a dict of rates per second; with `peak_flops` also the utilization (0 to 1)."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        flops = self._places / seconds * self._flops_per_place
        rates = {
            "examples_per_second": self._examples / seconds,
            "tokens_per_second": self._tokens / seconds,
            "model_tflops_per_second": flops / 1e12,
        }
        if self._peak_flops:
            # Other work may have disturbed the products that were measured, the clock may have
            # risen since (turbo), and a number that was given may be another machine's. Nothing is
            # faster than its peak, so the larger of both is the peak from now on.
            self._peak_flops = max(self._peak_flops, flops)
            rates["model_flop_utilisation"] = flops / self._peak_flops
        return rates


def throughput_of(settings, strategy, task, dtype):
    """Returns the `Throughput` of a run, with the peak that is given or measured.

    Args:
      settings: the `RunSettings`.
      strategy: the `tf.distribute.Strategy`.
      task: the `Task`.
      dtype: the dtype of the model's arithmetic.
    """
    flops = flops_per_example(settings, task)
    given, kind = settings.peak_tflops, devices.kind(strategy)
    if given is None and kind != "TPU":  # of a TPU nothing is measured
        peak = product_rate(kind, dtype)
    else:
        peak = (given or 0) * 1e12
    peak *= devices.num_processors(strategy)
    return Throughput(flops / task.lengths[0], peak)


def flops_per_example(settings, task):
    """Returns the operations of a training step for an example; arguments as `throughput_of`."""
    return task.sequences_per_example * training_flops(
        task.config,
        *task.lengths,
        settings.layer_mix,
        task.memory_length,
        task.num_outputs,
        settings.lora_rank,
        task.num_middle,
    )


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
