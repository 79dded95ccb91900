"""Progress bars, tables and a quiet terminal."""

import contextlib
import os
import re
import sys
import tempfile
import unicodedata

from nezha_tf.util import storage
from nezha_tf.util.language import translated

_WIDE = "\u2e80-\ufeff\uff00-\uffef"
# Where a line may be broken: behind each of these.
_UNITS = re.compile(f"\\s*[（“]*(?:[{_WIDE}]|[^\\s{_WIDE}]+)[，。；：、）”！？]*\\s*")


def show_anything():
    """Lets stdout and stderr show every line at once, and what their encoding lacks as \\uXXXX.

    Otherwise Python would keep the lines for a file or a pipe back until there are thousands of
    bytes, and a line that tells what was done could end the program, after the work.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)


def as_typed(program):
    """Returns how a program is called: python NAME.py for a script, other names as they are."""
    return f"python {program}" if program.endswith(".py") else program


def tell(*texts, **options):
    """Prints messages in the language of the screen; the options are those of `print`."""
    print(*map(translated, texts), **options)


def progress(iterable=None, **options):
    """Returns a progress bar with rate and time left; it is silent if stderr is no terminal."""
    from tqdm import tqdm

    options |= {name: translated(options[name]) for name in ("desc", "unit") if name in options}
    return tqdm(iterable, disable=not sys.stderr.isatty(), dynamic_ncols=True, **options)


def say(line):
    """Prints a message above the progress bars, if there are any."""
    from tqdm import tqdm

    tqdm.write(translated(line))
    sys.stdout.flush()


def folded(text, columns):
    """Returns a text in lines of at most so many columns, as far as its words allow.

    A line may end between Chinese characters, but the next one does not begin with punctuation.
    """
    lines = [""]
    for unit in _UNITS.findall(text):
        if _columns(lines[-1] + unit.rstrip()) > columns:
            lines.append("")
        lines[-1] += unit if lines[-1] else unit.lstrip()
    return "\n".join(line.rstrip() for line in lines)


def plural(count, noun):
    """Returns "1 document" or "2,000 documents"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def table(title, rows):
    """Returns rows as aligned text under a title.

    Args:
      title: the first line.
      rows: tuples of a name and values, all of the same length. If a row has several values,
        they are aligned to the right.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(_columns, column)) for column in zip(*texts, strict=True)]
    lines = [title]
    for name, *values in texts:
        if len(values) > 1:
            values = [
                " " * (width - _columns(value)) + value
                for value, width in zip(values, widths[1:], strict=True)
            ]
        lines.append("  ".join(["  " + name + " " * (widths[0] - _columns(name)), *values]))
    return "\n".join(lines)


def _columns(text):
    """Returns a text's width in terminal columns; a Chinese character has two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def facts(title, rows):
    """Returns a `table` whose names are messages, in the language of the screen."""
    return table(title, [(translated(name), *values) for name, *values in rows])


@contextlib.contextmanager
def native_stderr_into(path, ends):
    """Sends what native code writes to stderr into a file; what Python writes stays on the screen.

    The file is deleted after the block; after an error that is none of `ends` it is shown first. If
    the process crashes, it stays.

    Args:
      path: the file; its folder is made if it does not exist.
      ends: tuple of exception classes.
    """
    sys.stderr.flush()
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    stderr, screen = sys.stderr, os.dup(2)
    is_ordered = False
    kind = {"encoding": stderr.encoding, "errors": stderr.errors}
    with storage.open_anew(path) as log, open(screen, "w", **kind) as sys.stderr:
        os.dup2(log.fileno(), 2)
        try:
            yield
            is_ordered = True
        except ends:
            is_ordered = True
            raise
        finally:
            sys.stderr.flush()
            os.dup2(screen, 2)
            sys.stderr = stderr
            if not is_ordered:
                log.seek(0)
                os.write(2, log.read())
            os.remove(path)


@contextlib.contextmanager
def stderr_held_back():
    """Hides what native code writes to stderr, and prints it if the block fails.

    TensorFlow reports CPU features before its log level takes effect, and its converters ignore
    the level.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(stderr, kept.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
