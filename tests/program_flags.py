"""Lets one process define the flags of several programs, one after another."""

import contextlib

from absl import app, flags


@contextlib.contextmanager
def forgotten_afterwards():
    """Removes the flags that the block defines, and resets the values of older flags."""
    app.define_help_flags()  # defined once in a process, for all programs
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        for name in before:
            flags.FLAGS[name].unparse()
        flags.FLAGS.unparse_flags()
