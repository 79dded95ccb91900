"""The rates that a run tells, by clocks that stand still."""

import types

import pytest
import tensorflow as tf

from nezha_tf.training import throughput as throughput_module
from nezha_tf.training.throughput import Throughput


def rates(throughput, steps, length=8):
    """Of batches of 4 examples, for each of whose places there are 1.25e11 operations."""
    throughput.restart()
    throughput.add(4 * steps, tokens=10 * steps, places=4 * steps * length)
    found = throughput.rates()
    assert found["examples_per_second"] == steps * 4 / 2  # of 4 examples, in 2 seconds
    assert found["tokens_per_second"] == steps * 10 / 2
    assert found["model_tflops_per_second"] == steps * 4 / 2 * 0.125 * length
    return found.get("model_flop_utilisation")


@pytest.fixture
def two_seconds_each(monkeypatch):
    readings = iter(range(0, 1000, 2))
    clock = types.SimpleNamespace(monotonic=lambda: next(readings))
    monkeypatch.setattr(throughput_module, "time", clock)


def test_a_run_that_exceeds_the_peak_raises_it(two_seconds_each):
    throughput = Throughput(0.125e12, 16e12)
    shares = [rates(throughput, steps) for steps in (4, 8, 10, 4, 10)]
    assert shares == [0.5, 1.0, 1.0, 0.4, 1.0]
    assert rates(Throughput(0.125e12), 4) is None


def test_short_batches_have_less_arithmetic(two_seconds_each):
    throughput = Throughput(0.125e12, 16e12)
    assert [rates(throughput, 4, length) for length in (8, 4, 2)] == [0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    "wall, worked, threads, expected",
    [
        (0.1, 0.2, 2, 0.1),  # alone on two cores
        (0.75, 0.2, 2, 0.1),  # beside other programs, for which it waited
        (0.1, 0.3, 2, 0.1),  # beside other threads of this one
        (0.75, 0.2, None, 0.75),  # a GPU
    ],
)
def test_waiting_for_a_core_is_not_working(monkeypatch, wall, worked, threads, expected):
    clocks = {"perf_counter": iter((5.0, 5.0 + wall)), "process_time": iter((3.0, 3.0 + worked))}
    readings = {name: lambda times=times: next(times) for name, times in clocks.items()}
    monkeypatch.setattr(throughput_module, "time", types.SimpleNamespace(**readings))
    assert throughput_module._seconds(tf.ones((2, 2)), threads) == pytest.approx(expected)
