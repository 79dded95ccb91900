"""Where the time goes when examples are made."""

import collections
import contextlib
import time

READING, SEGMENTATION, TOKENS, EXAMPLES, WRITING = STAGES = (
    "reading",
    "segmentation",
    "tokens",
    "examples",
    "writing",
)


class Stopwatch:
    """Adds up the seconds of stages; those of a stage inside another count for the inner one."""

    def __init__(self):
        self._seconds = collections.Counter()
        self._inner = 0.0  # seconds of the stages inside the one that is open

    @contextlib.contextmanager
    def stage(self, name):
        """Counts the time of the block for a stage, one of `STAGES`."""
        started, outer, self._inner = time.perf_counter(), self._inner, 0.0
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self._seconds[name] += spent - self._inner
            self._inner = outer + spent

    def each(self, name, items):
        """Yields the items of an iterable; getting each of them is timed as a stage."""
        items, end = iter(items), object()
        while True:
            with self.stage(name):
                item = next(items, end)
            if item is end:
                return
            yield item

    def taken(self):
        """Returns a Counter of stage to seconds since the last call."""
        taken, self._seconds = self._seconds, collections.Counter()
        return taken
