"""The signals that ask a program to end: SIGTERM of a scheduler, SIGHUP of a closed terminal."""

import contextlib
import os
import signal


@contextlib.contextmanager
def asked(handle):
    """Calls a function when the first of these signals comes, in the block; later ones do nothing.

    A hangup that is ignored stays ignored, as under nohup. When the terminal is closed, later
    output to it is dropped: otherwise the next line of progress would be an error, and the program
    would end before it has saved.

    Args:
      handle: function of the signal's name. What it raises comes out of the code that is running.
    """
    terminals = [output for output in (1, 2) if os.isatty(output)]
    names = []

    def noted(number, frame):
        names.append(signal.Signals(number).name)
        _leave(output for output in terminals if not os.isatty(output))
        if len(names) == 1:
            handle(names[0])

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, noted) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _leave(outputs):
    """Lets file descriptors lead to nothing."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for output in outputs:
        os.dup2(nothing, output)
    os.close(nothing)
