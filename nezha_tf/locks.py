"""A lock on a file, so that one process at a time works; it ends when its process ends."""

import contextlib
import errno
import fcntl
import os
import platform

from nezha_tf.errors import UserError

_TAKEN = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def held(path, what):
    """Holds the lock of a file while the block runs, and removes the file when it ends.

    The lock is POSIX's (`fcntl.lockf`): the system gives it up when the process ends, killed or
    not, and NFS, Lustre, GPFS and CephFS pass it on between machines where they are mounted so.
    On a file system without locks nobody is kept out.

    Args:
      path: a local file of no other use, in a folder that is made if need be. A process that
        was killed leaves it, without its lock.
      what: what is held, for the message.

    Raises:
      UserError: another process holds it, or the file cannot be written.
    """
    folder = os.path.dirname(path) or "."
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    file = _locked(path, what)
    try:
        yield
    finally:
        # While the lock is held: whoever gets it later looks at whether the file is still there.
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        file.close()
        if is_new:
            with contextlib.suppress(OSError):  # there is something in it
                os.rmdir(folder)


def _locked(path, what):
    """Returns the open file with its lock."""
    while True:
        file = open(path, "a+", encoding="utf-8")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return file
            holder = _text_of(file)
            file.close()
            if error.errno not in _TAKEN:
                raise
            raise UserError(
                f"another run{holder} writes {what}; wait until it has ended, or name another"
            ) from error
        if _is_there(file, path):
            break
        file.close()  # of a run that has just ended and removed it
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
