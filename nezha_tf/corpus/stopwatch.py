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
        self._open, self._since = [], 0.0

    @contextlib.contextmanager
    def stage(self, name):
        """Counts the time of the block for a stage, one of `STAGES`."""
        self._book()
        self._open.append(name)
        try:
            yield
        finally:
            self._book()
            self._open.pop()

    def each(self, name, items):
        """Yields the items of an iterable; getting each of them is timed as a stage."""
        items, end = iter(items), object()
        while True:
            with self.stage(name):
                item = next(items, end)
            if item is end:
                return
            yield item

    def _book(self):
        """Counts the time since the last change for the innermost open stage."""
        now = time.perf_counter()
        if self._open:
            self._seconds[self._open[-1]] += now - self._since
        self._since = now

    def taken(self):
        """Returns a Counter of stage to seconds since the last call."""
        taken, self._seconds = self._seconds, collections.Counter()
        return taken
