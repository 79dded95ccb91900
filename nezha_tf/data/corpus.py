"""Running text: one sentence a line, a blank line between documents."""

import contextlib
import gzip
import zlib

from nezha_tf import storage
from nezha_tf.errors import UserError


def read_documents(path):
    """Yields the documents of a text file, each a list of sentences without outer white space.

    Args:
      path: a UTF-8 text file, or one of that kind compressed with gzip (`.gz`).

    Raises:
      UserError: a file that cannot be read, is cut short, or is not UTF-8 (with its line).
    """
    document = []
    for line in read_lines(path):
        sentence = line.strip()
        if sentence:
            document.append(sentence)
        elif document:
            yield document
            document = []
    if document:
        yield document


def read_lines(path):
    """Yields the lines of a text file as they stand, with their ends; else as `read_documents`."""
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                # A byte order mark is no part of the first sentence.
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 at byte {error.start} of the line; "
            "convert the file, for example with iconv"
        ) from error


@contextlib.contextmanager
def open_text(path):
    """Opens a text file, `.gz` too, for reading its bytes; what reading raises is a `UserError`."""
    try:
        with storage.open_binary(path, "rb") as raw:
            if path.endswith(".gz"):
                with gzip.open(raw) as file:
                    yield file
            else:
                yield raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file: {error}") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
