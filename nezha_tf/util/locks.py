"""A file lock that lets one process at a time do a job; it ends with its process."""

import contextlib
import errno
import fcntl
import os
import platform
import re
import stat

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError

_TAKEN = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
# What a lock's file holds; it is empty for a moment before.
_TEXT = re.compile(r"(process \d+ on [^\n]*\n?)?")
_MOST_BYTES = 1024
_NO_REGULAR_FILE = "is no regular file"
# What is said of the errors of opening what is no file.
_NO_FILE = {
    errno.ELOOP: "is a link",
    errno.EISDIR: _NO_REGULAR_FILE,
    errno.ENXIO: _NO_REGULAR_FILE,  # a socket
}


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
      UserError: another process holds the lock, and `waits` is False; or what has the file's name
        is no lock, but a link, say, and is left as it is.
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
        if _is_there(file, path):
            os.remove(path)
        file.close()
        if is_new:
            with contextlib.suppress(OSError):  # the folder is not empty
                os.rmdir(folder)


def _locked(path, what, kind):
    """Returns the open, locked file."""
    while True:
        file = _opened(path)
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
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {platform.node()}\n".encode())
    return file


def _opened(path):
    """Opens, or makes, the file of a lock.

    Raises:
      UserError: what has this name is not ours to write into. In a folder that was unpacked, or
        that others may write in, it could lead to any file of the user's.
    """
    options = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = open(path, "r+b", 0, opener=lambda name, _: os.open(name, options, 0o666))
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise _no_lock(path, _NO_FILE[error.errno]) from error
    why = _fault(file)
    if why:
        file.close()
        raise _no_lock(path, why)
    return file


def _fault(file):
    """Returns why an open file is no lock, or ""."""
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        return _NO_REGULAR_FILE
    if found.st_nlink > 1:
        return "has a second name (a hard link)"
    return "" if _TEXT.fullmatch(_beginning(file)) else "holds something else"


def _no_lock(path, why):
    return UserError(f"{path} {why}, so it is no lock of this program; move it away")


def _beginning(file):
    file.seek(0)
    return file.read(_MOST_BYTES).decode(errors="replace")


def _text_of(file):
    text = _beginning(file).strip()
    return f" ({text})" if text else ""


def _is_there(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False
