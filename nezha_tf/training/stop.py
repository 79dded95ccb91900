"""Handles SIGTERM, which a scheduler sends before it stops a machine."""

import signal


class StopRequest:
    """Turns SIGTERM into a request that the training loop follows after the current steps."""

    def __init__(self):
        self.requested = 0.0
        self._old = None

    def __enter__(self):
        self._old = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *error):
        signal.signal(signal.SIGTERM, self._old)

    def _note(self, number, frame):
        self.requested = 1.0
