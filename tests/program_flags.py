"""One program's flags after another's, in one process."""

import contextlib

from absl import app, flags


@contextlib.contextmanager
def forgotten_afterwards():
    """Flags that the block defines are unknown after it, and those of before have no values."""
    app.define_help_flags()  # once in a process, for all programs
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)
        for name in before:
            flags.FLAGS[name].unparse()
        flags.FLAGS.unparse_flags()
