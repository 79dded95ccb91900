"""Files: names and globs in, whole files out."""

import contextlib
import os

from nezha_tf.errors import UserError, first_line, require_flag


def expand(patterns, flag):
    """Returns the files that a comma-separated list of names and globs stands for, sorted.

    Args:
      patterns: the flag's value.
      flag: the flag's name, for the error.

    Raises:
      UserError: nothing matches one of the patterns, or a matching file is empty.
    """
    import tensorflow as tf

    try:
        return _expand(patterns, flag, tf.io.gfile)
    except tf.errors.OpError as error:
        raise UserError(f"--{flag}={patterns}: {first_line(error)}") from error


def _expand(patterns, flag, gfile):
    files = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matches = [path for path in gfile.glob(pattern) if not gfile.isdir(path)]
        if not matches:
            raise UserError(f"--{flag}: no file matches {pattern!r}; check the path")
        files.update(matches)
    require_flag(files, flag)
    for path in files:
        if not gfile.stat(path).length:
            raise UserError(f"--{flag}: {path} is empty")
    return sorted(files)


@contextlib.contextmanager
def whole_file(path):
    """Yields a temporary path that takes the name `path` when the block ends well.

    After an error nothing is left under either name, and an old file stays as it was.
    """
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def write_text(path, text):
    """Writes a UTF-8 text file; it appears whole or not at all."""
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
