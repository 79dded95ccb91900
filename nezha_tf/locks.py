"""A file lock that lets one process at a time do a job; it ends with its process."""

import contextlib
import errno
import fcntl
import os
import platform

from nezha_tf import storage
from nezha_tf.errors import UserError

_TAKEN = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def held(path, what, waits=False):
    """Holds a lock on a file while the block runs, and removes the file afterwards.

    The lock is POSIX's (`fcntl.lockf`): the system releases it when the process ends, even if it is
    killed. NFS, Lustre, GPFS and CephFS share it between machines if they are mounted with locks.
    On a file system without locks, and on remote stores, other processes are not kept out.

    Args:
      path: a file that is used for nothing else; its folder is made if it is missing. A
        killed process leaves the file behind, without the lock.
      what: what is locked, for the message.
      waits: whether to wait for a process that holds the lock; for jobs of a moment.

    Raises:
      UserError: another process holds the lock, and `waits` is False.
      OSError: the file cannot be written.
    """
    if storage.is_remote(path):
        yield
        return
    folder = os.path.dirname(path) or "."
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    file = _locked(path, what, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        # Remove the file while it is locked: the next holder checks that it still exists.
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        file.close()
        if is_new:
            with contextlib.suppress(OSError):  # the folder is not empty
                os.rmdir(folder)


def _locked(path, what, kind):
    """Returns the open, locked file."""
    while True:
        file = open(path, "a+", encoding="utf-8")
        try:
            fcntl.lockf(file, kind)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return file
            holder = _text_of(file)
            file.close()
            if error.errno not in _TAKEN:
                raise
            raise UserError(
                f"another run{holder} is writing {what}; wait until it ends, or choose another name"
            ) from error
        if _is_there(file, path):
            break
        file.close()  # a run that just ended has removed this file
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}\n")
    file.flush()
    return file


def _text_of(file):
    file.seek(0)
    text = file.read().strip()
    return f" ({text})" if text else ""


def _is_there(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
