"""Programs in a terminal of their own, which tests close."""

import contextlib
import fcntl
import os
import signal
import subprocess
import termios


def heeds_hangups():
    """For `preexec_fn`: under nohup these tests ignore hangups, and a program would inherit it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Terminal:
    """A program whose input and output are a terminal.

    Attributes:
      process: `subprocess.Popen`.
    """

    def __init__(self, command, folder):
        self._screen, inner = os.openpty()
        os.set_blocking(self._screen, False)
        self._shown = b""

        def take():
            heeds_hangups()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=take,
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
