"""Lets no two runs train in one folder."""

import contextlib
import os

from nezha_tf.training import devices
from nezha_tf.util import locks
from nezha_tf.util.errors import UserError

# Locks the folder of a run while it trains.
LOCK_FILE = "run.lock"


@contextlib.contextmanager
def alone_in(settings, strategy):
    """Locks the --output_dir while the block trains, so that no other run trains there.

    The workers of a strategy are one run, and their chief holds the lock.

    Args:
      settings: `RunSettings`; without `do_train` there is no lock.
      strategy: the `tf.distribute.Strategy`.

    Raises:
      UserError: another run trains there; all workers raise it.
    """
    folder = settings.output_dir
    with contextlib.ExitStack() as stack:
        taken = None
        try:
            if settings.do_train and devices.is_chief(strategy):
                stack.enter_context(locks.held(os.path.join(folder, LOCK_FILE), folder))
        except UserError as error:
            taken = error
        if not devices.agree_on(strategy, int(taken is not None)) or taken:
            raise taken or UserError(f"the chief says that another run is writing {folder}")
        yield
