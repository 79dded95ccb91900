"""The cores of this machine."""

import os


def available_cores():
    """Returns the number of cores that this process may use, or of all if that is unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
