"""Finds the files that flags name, and writes files that are complete or absent."""

import contextlib
import json
import os
import platform
import re
import shutil

from nezha_tf.util import storage
from nezha_tf.util.errors import UserError, require_flag

# What file systems of Linux allow to the name of a file, and the highest process id.
_MOST_NAME_BYTES = 255
_LONGEST_PROCESS_ID = 2**22


def expand(patterns, flag, may_be_empty=False, in_folders=None):
    """Returns the files that a comma-separated list of names and globs matches, sorted.

    Args:
      patterns: the flag's value.
      flag: the flag's name, for the error.
      may_be_empty: whether files of 0 bytes are allowed.
      in_folders: how the names of files end for which a folder that holds them, at any depth,
        stands; None: folders are left out.

    Raises:
      UserError: the flag is empty, a pattern matches no file, or a matching file is empty.
    """
    try:
        return _expand(patterns, flag, may_be_empty, in_folders)
    except OSError as error:
        raise UserError(f"--{flag}={patterns}: {error.strerror}") from error


def _expand(patterns, flag, may_be_empty, in_folders):
    sizes = {}
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        paths = storage.glob(pattern)
        if in_folders is not None:
            paths = [inner for path in paths for inner in _inside(path, in_folders)]
        found = storage.sizes(paths).items()
        matches = {path: size for path, size in found if size is not None}
        if not matches:
            raise UserError(f"--{flag}: no file matches {pattern!r}; check the path")
        sizes |= matches
    files = require_flag(sizes, flag)
    if not may_be_empty:
        require_content(sizes, flag)
    return sorted(files)


def _inside(path, ending):
    """Yields a path, or the files of a folder at any depth that end so; hidden ones are no part."""
    if not storage.isdir(path):
        yield path
        return
    for name in storage.listdir(path):
        name = name.rstrip("/")  # of a folder in a remote store
        inner = os.path.join(path, name)
        # A link to a folder may lead around for ever.
        is_folder, is_link = storage.isdir(inner), os.path.islink(inner)
        if not name.startswith(".") and not (is_folder and is_link):
            if is_folder or name.endswith(ending):
                yield from _inside(inner, ending)


def require_content(sizes, flag):
    """Raises a `UserError` if a file of a flag is empty; `sizes` is a dict of path to bytes."""
    for path, size in sizes.items():
        if not size:
            raise UserError(f"--{flag}: {path} is empty; remove it, or narrow the pattern")


def require_other(path, flag, inputs):
    """Raises a `UserError` if a file to write is also an input file.

    Args:
      path: the file to write.
      flag: the flag that names it.
      inputs: the input files.
    """
    target = file_id(path)
    for source in inputs:
        if file_id(source) == target:
            raise UserError(
                f"--{flag}={path} is also an input file and would be overwritten; choose another "
                "output name, or narrow the pattern of the input"
            )


def file_id(path):
    """Returns a value that identifies a file; all its names and links have the same value."""
    try:
        found = os.stat(path)
    except OSError:  # the file does not exist yet, or is remote
        return path if storage.is_remote(path) else os.path.realpath(path)
    return found.st_dev, found.st_ino


def same_bytes(path, other):
    """Whether two files have the same content."""
    return _bytes_of(path) == _bytes_of(other)


def _bytes_of(path):
    with storage.open_binary(path, "rb") as file:
        return file.read()


def folder_name(path):
    """Returns the last part of a folder's path; `.` and `..` are resolved."""
    part = path.rstrip("/") if storage.is_remote(path) else os.path.abspath(path)
    return os.path.basename(part)


def export_name(path):
    """Returns the name of the model in the folder of an export.

    It is the name of the folder above if the folder's own is the number of a version, as TensorFlow
    Serving wants it.
    """
    name, above = folder_name(path), folder_name(os.path.dirname(os.path.abspath(path)))
    return above if name.isdecimal() and above else name


def folder_names(paths, name_of=folder_name):
    """Returns the name of each path; or the paths, if two of these names are the same."""
    names = [name_of(path) for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def require_folder(path, flag):
    """Raises a `UserError` if a path cannot be a folder because it, or a parent of it, is a file.

    Args:
      path: the folder; it need not exist yet.
      flag: the flag that names it.
    """
    _require_folder(path, path, flag)


def require_file(path, flag):
    """Raises a `UserError` if `whole_file` could not write a file; to be known before the work.

    Args:
      path: the file; it need not exist yet.
      flag: the flag that names it.
    """
    if not os.path.basename(path) or storage.isdir(path):
        raise UserError(f"--{flag}={path} is a folder; name a file in it")
    _require_no_device(path)
    require_short_name(path, flag)
    _require_folder(os.path.dirname(path), path, flag)


def require_short_name(path, flag, ending=""):
    """Raises a `UserError` if a file's name leaves no room for that of its temporary file.

    Args:
      path: the file.
      flag: the flag that names it.
      ending: what is added to the name of the longest file beside it.
    """
    name = os.path.basename(temporary_name(path + ending, _LONGEST_PROCESS_ID))
    excess = len(os.fsencode(name)) - _MOST_NAME_BYTES
    if excess > 0 and not storage.is_remote(path):
        raise UserError(
            f"--{flag}={path}: the name is too long by {excess} bytes, as the unfinished file's "
            "name is longer; choose a shorter one"
        )


def _require_folder(folder, path, flag):
    """Does what `require_folder` does for a folder that the path of a flag needs."""
    part = folder
    if storage.is_remote(folder):
        is_file = storage.exists(folder) and not storage.isdir(folder)
    else:
        part = os.path.abspath(folder)
        while not os.path.lexists(part):
            part = os.path.dirname(part)
        is_file = not os.path.isdir(part)  # a broken link, too, is in the way
    if is_file:
        raise UserError(f"--{flag}={path}: {part} is a file, not a folder; choose another name")


def read_object(path):
    """Returns the JSON object of a file as a dict, or None if there is no such file.

    Raises:
      UserError: the file cannot be read, or is not a JSON object.
    """
    try:
        with storage.open_text(path, "utf-8-sig") as file:  # a byte order mark is allowed
            found = json.load(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({error}); restore or remove the file") from error
    if not isinstance(found, dict):
        raise UserError(f"{path} is not a JSON object; restore or remove the file")
    return found


@contextlib.contextmanager
def whole_file(path):
    """Yields a temporary path, and renames that file to `path` when the block succeeds.

    After an error the temporary file is removed, and an older file `path` is unchanged.

    Raises:
      UserError: `path` is a device or a pipe, which would be replaced by a file.
    """
    _require_no_device(path)
    folder = os.path.dirname(path)
    if folder:
        storage.makedirs(folder)
    temporary = temporary_name(path, os.getpid())
    try:
        with _named_as(path, temporary):
            if not storage.is_remote(path):
                # Nor may a link be there that someone has laid: what is written would follow it.
                storage.remove_link(temporary)
            yield temporary
            storage.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            storage.remove(temporary)


def _require_no_device(path):
    if not storage.is_remote(path) and os.path.exists(path) and not os.path.isdir(path):
        if not os.path.isfile(path):
            raise UserError(f"{path} is no regular file; write to one, and pass it on from there")


@contextlib.contextmanager
def _named_as(path, temporary):
    """Replaces the temporary file's name in errors of the block by the final name."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(temporary):
            named = path + error.filename.removeprefix(temporary)
            raise OSError(error.errno, error.strerror, named) from error
        raise


def temporary_name(path, process_id):
    """Returns the temporary name of a file that a process of this machine is writing."""
    return f"{path}.{platform.node()}.{process_id}.tmp"


def writer_of(temporary):
    """Returns the id of the process that wrote a temporary file; None: on another machine."""
    process = re.search(rf"\.{re.escape(platform.node())}\.(\d+)\.tmp$", temporary)
    return int(process[1]) if process else None


@contextlib.contextmanager
def whole_folder(path):
    """Yields a temporary folder, and renames it to `path` when the block succeeds.

    Raises:
      UserError: `path` exists already, or is remote: a remote folder cannot be renamed at once.
    """
    if storage.is_remote(path):
        raise UserError(f"{path} is not on this machine; name a folder here, and copy it there")
    path = os.path.abspath(path)
    if os.path.lexists(path):
        raise UserError(f"{path} is there already; choose a new folder, or remove it")
    temporary = temporary_name(path, os.getpid())
    try:
        with _named_as(path, temporary):
            # An earlier process with this id, as those of a container have, may have been killed.
            with contextlib.suppress(FileNotFoundError):
                storage.remove_all(temporary)
            os.makedirs(temporary)
            yield temporary
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def copy(source, target):
    """Copies a file: the target is complete, or absent after an error."""
    with whole_file(target) as temporary, storage.open_binary(temporary, "wb") as file:
        file.write(_bytes_of(source))


def write_text(path, text):
    """Writes a complete UTF-8 text file, or no file after an error."""
    with whole_file(path) as temporary, storage.open_binary(temporary, "wb") as file:
        file.write(text.encode())
