"""Local files without TensorFlow, and remote files (`gs://`, `hdfs://` ...) by `tf.io.gfile`.

TensorFlow takes three seconds and 800 MB. Programs that only handle text import it only if a path
has a scheme. Every failure is an `OSError`, for local and remote files.
"""

import contextlib
import errno
import glob as local_glob
import io
import os
import re
import shutil
from concurrent import futures

from nezha_tf.util.errors import first_line
from nezha_tf.util.package_data import in_package, located

REMOTE_BUFFER_BYTES = 1 << 20
ASKED_AT_ONCE = 32


def is_remote(path):
    """Whether a path has a scheme, such as `gs://`."""
    return "://" in os.fspath(path)


def with_single_slashes(path):
    """Returns a path with one slash where it has several, as `glob` returns it.

    The slashes of a scheme (`gs://`) stay.
    """
    scheme, separator, rest = path.rpartition("://")
    return scheme + separator + re.sub("/+", "/", rest)


def open_binary(path, mode):
    """Opens a file; for reading also one of the package by its path in a clone.

    Args:
      path: local or remote.
      mode: "rb", "wb" or "ab".

    Returns:
      A buffered binary file.
    """
    if not is_remote(path):
        return open(located(path) if mode == "rb" else path, mode)
    raw = _RemoteFile(path, mode)
    buffered = io.BufferedReader if mode == "rb" else io.BufferedWriter
    return buffered(raw, REMOTE_BUFFER_BYTES)


def open_anew(path):
    """Opens a new local file for writing and reading bytes; what had its name is removed.

    A link of this name is not followed, so nothing but the new file is written to.
    """
    remove_link(path)
    return open(path, "x+b")


def remove_link(path):
    """Removes what has a local file's name, if anything; not what a link leads to."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def open_text(path, encoding="utf-8"):
    """Opens a text file for reading."""
    return io.TextIOWrapper(open_binary(path, "rb"), encoding)


def glob(pattern):
    """Returns the files and folders that match a name or glob, as a list.

    `**` as a part of the path stands for any number of folders. What matches nothing may be the
    name of a file, or its folder's name, that looks like a glob; or files of the package.
    """
    if is_remote(pattern):
        return _remote_glob(pattern) or [pattern] * exists(pattern)
    own = in_package(pattern)
    return _local_glob(pattern) or (_local_glob(own) if own else [])


def _local_glob(pattern):
    folder, name = os.path.split(pattern)
    as_it_is = os.path.join(local_glob.escape(folder), name)
    return (
        local_glob.glob(pattern, recursive=True)
        or [pattern] * os.path.exists(pattern)
        or local_glob.glob(as_it_is)
    )


def _remote_glob(pattern):
    first, *others = re.split(r"/\*\*(?=/|$)", pattern, maxsplit=1)
    if not others:
        return _remote("glob", pattern)
    below = [folder for start in _remote("glob", first) for folder in _folders(start)]
    rest = others[0] or "/*"
    return sorted({path for folder in below for path in _remote_glob(folder + rest)})


def _folders(path):
    """Yields a remote folder and all folders below it, but hidden ones, as Python's glob."""
    if isdir(path):
        yield path
        for name in listdir(path):
            if not name.startswith("."):
                yield from _folders(f"{path}/{name.rstrip('/')}")


def listdir(path):
    """Returns the names of what is in a folder, as a list; [] if there is no such folder."""
    if not isdir(path):
        return []
    return _remote("listdir", path) if is_remote(path) else os.listdir(path)


def exists(path):
    """Whether a file or folder of this name exists."""
    return _remote("exists", path) if is_remote(path) else os.path.exists(path)


def isdir(path):
    """Whether the path is a folder."""
    return _remote("isdir", path) if is_remote(path) else os.path.isdir(path)


def sizes(paths):
    """Returns a dict of path to its size in bytes; None for a folder.

    Remote stores are asked for several at once, since each answer takes a while.
    """
    paths = list(paths)
    with futures.ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        asked = (pool.map if any(map(is_remote, paths)) else map)(_size_of, paths)
        return dict(zip(paths, asked, strict=True))


def size(path):
    """Returns the size of a file in bytes."""
    return _remote("stat", path).length if is_remote(path) else os.path.getsize(path)


def makedirs(path):
    """Makes a folder and its missing parents."""
    _remote("makedirs", path) if is_remote(path) else os.makedirs(path, exist_ok=True)


def replace(source, target):
    """Renames a file and replaces a file that has the new name already."""
    if is_remote(target):
        _remote("rename", source, target, True)
    else:
        os.replace(source, target)


def remove(path):
    """Removes a file."""
    _remote("remove", path) if is_remote(path) else os.remove(path)


def remove_all(path):
    """Removes a file, or a folder and what is in it."""
    if not isdir(path):
        remove(path)
    elif is_remote(path):
        _remote("rmtree", path)
    elif os.path.islink(path):
        os.remove(path)
    else:
        shutil.rmtree(path)


class _RemoteFile(io.RawIOBase):
    """A `tf.io.gfile.GFile` with the interface of Python's files."""

    def __init__(self, path, mode):
        self.name = path
        self._mode = mode
        self._file = _remote("GFile", path, mode)
        if mode != "rb":  # otherwise a file to which nothing is written is not made
            _translated(self._file.write, path, b"")

    def readable(self):
        return self._mode == "rb"

    def seekable(self):
        return self._mode == "rb"

    def seek(self, offset, whence=os.SEEK_SET):
        if not self.seekable():
            return super().seek(offset, whence)
        _translated(self._file.seek, self.name, offset, whence)
        return _translated(self._file.tell, self.name)

    def writable(self):
        return self._mode != "rb"

    def readinto(self, buffer):
        data = _translated(self._file.read, self.name, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data):
        _translated(self._file.write, self.name, bytes(data))
        return len(data)

    def close(self):
        if not self.closed:
            super().close()
            _translated(self._file.close, self.name)


def _size_of(path):
    if is_remote(path):
        found = _remote("stat", path)
        return None if found.is_directory else found.length
    return None if os.path.isdir(path) else os.path.getsize(path)


def _remote(name, path, *arguments):
    import tensorflow as tf

    return _translated(getattr(tf.io.gfile, name), path, path, *arguments)


def _translated(function, path, *arguments):
    """Calls a TensorFlow function; its errors become `OSError`s with the file's name."""
    import tensorflow as tf

    try:
        return function(*arguments)
    except tf.errors.OpError as error:
        codes = {
            tf.errors.NotFoundError: errno.ENOENT,
            tf.errors.ResourceExhaustedError: errno.ENOSPC,
        }
        raise OSError(codes.get(type(error), errno.EIO), first_line(error), path) from error
