"""Reads a text corpus: one sentence per line, a blank line between documents."""

import contextlib
import gzip
import zlib

from nezha_tf import storage
from nezha_tf.errors import UserError


def read_documents(path):
    """Yields the documents of a text file: lists of sentences without white space at their ends.

    Args:
      path: a UTF-8 text file, or such a file compressed with gzip (`.gz`).

    Raises:
      UserError: the file cannot be read, is truncated, or is not UTF-8 (with the line number).
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
    """Yields the lines of a text file unchanged, with their line ends.

    Argument and errors are those of `read_documents`.
    """
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                # A byte order mark does not belong to the first sentence.
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 at byte {error.start} of the line; "
            "convert the file, for example with iconv"
        ) from error


@contextlib.contextmanager
def open_text(path):
    """Opens a text file (or `.gz`) to read its bytes; errors of reading become `UserError`s."""
    try:
        with storage.open_binary(path, "rb") as raw:
            if path.endswith(".gz"):
                with gzip.open(raw) as file:
                    yield file
            else:
                yield raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
