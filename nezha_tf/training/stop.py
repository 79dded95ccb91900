"""SIGTERM: what a scheduler sends before it takes the machine away."""

import signal


class StopRequest:
    """Turns SIGTERM into a wish that the training loop grants after the steps under way."""

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
