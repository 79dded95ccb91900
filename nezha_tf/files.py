"""Files: names and globs in, whole files out."""

import contextlib
import json
import os
import platform
import re
import shutil

from nezha_tf import storage
from nezha_tf.errors import UserError, require_flag


def expand(patterns, flag, may_be_empty=False):
    """Returns the files that a comma-separated list of names and globs stands for, sorted.

    Args:
      patterns: the flag's value.
      flag: the flag's name, for the error.
      may_be_empty: whether files without a byte are let through.

    Raises:
      UserError: nothing matches one of the patterns, or a matching file is empty.
    """
    try:
        return _expand(patterns, flag, may_be_empty)
    except OSError as error:
        raise UserError(f"--{flag}={patterns}: {error.strerror}") from error


def _expand(patterns, flag, may_be_empty):
    files = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matches = [path for path in storage.glob(pattern) if not storage.isdir(path)]
        if not matches:
            raise UserError(f"--{flag}: no file matches {pattern!r}; check the path")
        files.update(matches)
    require_flag(files, flag)
    for path in files:
        if not may_be_empty and not storage.size(path):
            raise UserError(f"--{flag}: {path} is empty")
    return sorted(files)


def require_other(path, flag, inputs):
    """Raises a `UserError` where a file to write is one of those that are read.

    Args:
      path: the file to write.
      flag: the flag that names it.
      inputs: the files that are read.
    """
    target = file_id(path)
    for source in inputs:
        if file_id(source) == target:
            raise UserError(
                f"--{flag}={path} is among the files that are read and would be lost; write to "
                "another name, or narrow the pattern of the input"
            )


def file_id(path):
    """Returns what identifies a file, whatever name or link leads to it."""
    try:
        found = os.stat(path)
    except OSError:  # not there yet, or remote
        return path if storage.is_remote(path) else os.path.realpath(path)
    return found.st_dev, found.st_ino


def same_bytes(path, other):
    """Whether two files have the same content."""
    return _bytes_of(path) == _bytes_of(other)


def _bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def require_folder(path, flag):
    """Raises a `UserError` where a path cannot be a folder, as a file has its name or a part of it.

    Args:
      path: the folder, which need not be there yet.
      flag: the flag that names it.
    """
    part = os.path.abspath(path)
    while not os.path.lexists(part):
        part = os.path.dirname(part)
    if not os.path.isdir(part):
        raise UserError(f"--{flag}={path}: {part} is a file, not a folder; name another")


def read_object(path):
    """Returns the object that a file of JSON holds, a dict, or None where there is no such file.

    Raises:
      UserError: a file that cannot be read or holds something else.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:  # with a byte order mark, or without
            found = json.load(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}; it is damaged") from error
    if not isinstance(found, dict):
        raise UserError(f"{path} is not a JSON object; it is damaged")
    return found


@contextlib.contextmanager
def whole_file(path):
    """Yields a temporary path that takes the name `path` when the block ends well.

    After an error nothing is left under either name, and an old file stays as it was.
    """
    folder = os.path.dirname(path)
    if folder:
        storage.makedirs(folder)
    temporary = temporary_name(path, os.getpid())
    try:
        with _named_as(path, temporary):
            yield temporary
            storage.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            storage.remove(temporary)


@contextlib.contextmanager
def _named_as(path, temporary):
    """Makes errors of the block name the final file, not the temporary one."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(temporary):
            named = path + error.filename.removeprefix(temporary)
            raise OSError(error.errno, error.strerror, named) from error
        raise


def temporary_name(path, process_id):
    """Returns the name that a file has while a process of this machine writes it."""
    return f"{path}.{platform.node()}.{process_id}.tmp"


def writer_of(temporary):
    """Returns the id of the process that wrote a temporary file; None: not of this machine."""
    process = re.search(rf"\.{re.escape(platform.node())}\.(\d+)\.tmp$", temporary)
    return int(process[1]) if process else None


@contextlib.contextmanager
def whole_folder(path):
    """Yields a temporary folder that takes the name `path` when the block ends well.

    Raises:
      UserError: `path` is there already.
    """
    path = os.path.abspath(path)
    if os.path.lexists(path):
        raise UserError(f"{path} is there already; name a new folder, or remove it")
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with _named_as(path, temporary):
            os.makedirs(temporary)
            yield temporary
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path, text):
    """Writes a UTF-8 text file; it appears whole or not at all."""
    with whole_file(path) as temporary, storage.open_binary(temporary, "wb") as file:
        file.write(text.encode())
