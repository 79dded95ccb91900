"""Programs in a terminal of their own, which tests close."""

import contextlib
import os
import subprocess


class Terminal:
    """A program whose input and output are a terminal.

    Attributes:
      process: `subprocess.Popen`.
    """

    def __init__(self, command, folder):
        self._screen, inner = os.openpty()
        os.set_blocking(self._screen, False)
        self._shown = b""
        self.process = subprocess.Popen(
            ("setsid", "--ctty", *command),
            cwd=folder,
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)

    def shown(self):
        """Returns all text so far. A program waits when a few thousand bytes have not been read."""
        with contextlib.suppress(OSError):  # nothing more now, or never, as the program has ended
            while part := os.read(self._screen, 1 << 16):
                self._shown += part
        return self._shown.decode()

    def close(self):
        """Closes the window, so that the program gets SIGHUP and nothing can be written."""
        os.close(self._screen)
