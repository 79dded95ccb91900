"""Timings of contenders side by side: each in a process of its own, in turns.

Machines drift, and two thread pools in one process disturb each other. So each contender builds
its step in a fresh process that is stopped, threads of its own and all, while another's turn
lasts, and what is reported is a ratio within each round of turns.
"""

import contextlib
import multiprocessing
import os
import signal
import time
from types import MappingProxyType

import numpy as np

# One is fair where other work runs: two that wait for each other lose more by it.
THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))


def import_tensorflow():
    """Returns tensorflow, quiet and with `THREADS` threads; nothing else may have begun them."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    return tf


def import_torch():
    """Returns torch, with `THREADS` threads; transformers is then without tensorflow."""
    os.environ["USE_TF"] = "0"  # transformers would import it, and its threads with it
    import torch

    torch.set_num_threads(THREADS)
    return torch


def run_in_turns(makers, rounds, steps, environments=MappingProxyType({})):
    """Times contenders in turns.

    Args:
      makers: dict of name to (function, arguments); the function is a module's own, runs in the
        contender's process and returns a callable that makes one step and waits for its end.
      rounds: turns that each contender gets.
      steps: steps in a turn that count; one more comes before them.
      environments: dict of name to what its process has besides in its environment, a dict.

    Returns:
      dict of name to seconds, float [rounds, steps].
    """
    contenders = {}
    try:
        for name, maker in makers.items():
            contenders[name] = _Contender(environments.get(name, {}), *maker)
            contenders[name].time(2)
        times = {name: [] for name in makers}
        for _ in range(rounds):
            for name, contender in contenders.items():
                times[name].append(contender.time(steps + 1)[1:])
    finally:
        for contender in contenders.values():
            contender.stop()
    return {name: np.array(values) for name, values in times.items()}


def in_fresh_process(function, *arguments, environment=MappingProxyType({})):
    """Returns what a function of a module returns in a process of its own."""
    with _environment(environment), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def milliseconds(times):
    """Returns the median of seconds, and the least, as text in milliseconds."""
    middle, least = (
        f"{seconds * 1000:.{0 if seconds >= 0.1 else 1}f}"
        for seconds in (np.median(times), times.min())
    )
    return f"{middle} (least {least})"


def ratio(times, others):
    """Returns the ratio of two contenders' seconds as text.

    The median over the turns, of the turns' medians, with its quartiles; and the ratio of the
    fastest steps, which other work on the machine disturbs least.
    """
    ratios = np.median(times, axis=1) / np.median(others, axis=1)
    low, middle, high = np.percentile(ratios, (25, 50, 75))
    return f"{middle:.2f} ({low:.2f} to {high:.2f}; fastest {times.min() / others.min():.2f})"


class _Contender:
    """A process that makes steps when told."""

    def __init__(self, environment, make, *arguments):
        context = multiprocessing.get_context("spawn")
        self._pipe, end = context.Pipe()
        self._process = context.Process(target=_serve, args=(end, make, arguments), daemon=True)
        with _environment(environment):
            self._process.start()
        end.close()

    def time(self, steps):
        os.kill(self._process.pid, signal.SIGCONT)
        self._pipe.send(steps)
        seconds = self._pipe.recv()
        os.kill(self._process.pid, signal.SIGSTOP)
        return seconds

    def stop(self):
        self._process.kill()  # which ends a process that is stopped, too
        self._process.join()


@contextlib.contextmanager
def _environment(changes):
    """Has these variables in the environment, which a process gets when it starts."""
    before = dict(os.environ)
    os.environ.update(OMP_NUM_THREADS=str(THREADS), **changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _serve(pipe, make, arguments):
    step = make(*arguments)
    while True:
        seconds = []
        for _ in range(pipe.recv()):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        pipe.send(seconds)
