"""Handles the signals that ask a run to end."""

from nezha_tf.util import endings


class StopRequest:
    """Turns a signal into a request that the training loop follows after the current steps.

    Attributes:
      requested: 1.0 after a signal, before it 0.0; the workers of a run add theirs up.
      signal: name of the signal that came to this process, or None.
    """

    def __init__(self):
        self.requested = 0.0
        self.signal = None
        self._handled = endings.asked(self._note)

    def __enter__(self):
        self._handled.__enter__()
        return self

    def __exit__(self, *error):
        self._handled.__exit__(*error)

    def _note(self, name):
        self.requested, self.signal = 1.0, name
