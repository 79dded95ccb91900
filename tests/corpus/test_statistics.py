"""The time of stages, by a clock that the test moves."""

from nezha_tf.corpus import statistics
from nezha_tf.corpus.statistics import EXAMPLES, READING, SEGMENTATION, TOKENS, Stopwatch


def test_an_inner_stage_takes_its_time_from_the_outer_one(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(statistics.time, "perf_counter", lambda: now[0])
    clock = Stopwatch()

    def slow_items():
        for _ in range(3):
            now[0] += 10
            yield 0

    for _ in clock.each(READING, slow_items()):
        now[0] += 1000  # belongs to no stage
    with clock.stage(EXAMPLES):
        now[0] += 1
        with clock.stage(TOKENS):
            now[0] += 2
            for _ in range(2):
                with clock.stage(SEGMENTATION):
                    now[0] += 100
            now[0] += 3
        now[0] += 4
    assert clock.taken() == {READING: 30, EXAMPLES: 5, TOKENS: 5, SEGMENTATION: 200}
    with clock.stage(TOKENS):
        now[0] += 7
    assert clock.taken() == {TOKENS: 7}
