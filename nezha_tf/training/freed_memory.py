"""Memory that the process has freed, but still holds."""

import ctypes
import sys


def give_back():
    """Gives freed memory back to the system, where the C library is glibc.

    XLA's compiler allocates and frees up to a gigabyte in small blocks, which glibc keeps for later
    ones (malloc_trim(3)). The buffers of a step are large, so they do not use it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
