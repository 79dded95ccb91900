"""Reads and writes a text corpus: one sentence per line, a blank line between documents."""

import collections
import contextlib
import gzip
import zlib

from nezha_tf import files, storage
from nezha_tf.errors import UserError

STRETCH_BYTES = 2 << 20


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


def write_documents(path, documents):
    """Writes a complete text file that `read_documents` reads, or no file after an error.

    Args:
      path: the file; compressed with gzip if it ends in `.gz`.
      documents: iterable of lists of sentences, each without line breaks and not blank.

    Raises:
      OSError: the file cannot be written.
      UserError: whatever `documents` raises.
    """
    with files.whole_file(path) as temporary, storage.open_binary(temporary, "wb") as file:
        # Without the time and the name, the same documents give the same bytes.
        packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.endswith(".gz") else None
        with packed or contextlib.nullcontext(file) as text:
            for document in documents:
                text.write("".join(f"{line}\n" for line in [*document, ""]).encode())


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


def read_stretches(path):
    """Yields the bytes of a text file in stretches of about `STRETCH_BYTES`.

    A stretch ends at a line end. In a longer line it ends at a space or before a CJK character, so
    no word is cut: what has neither stays together.

    Argument and errors are those of `read_documents`, but `decoded` finds what is not UTF-8.
    """
    with open_text(path) as file:
        begun = []
        while block := file.read(STRETCH_BYTES):
            end = _last_border(block)
            if not end:
                begun.append(block)
                continue
            yield b"".join([*begun, block[:end]])
            begun = [block[end:]]
        if any(begun):
            yield b"".join(begun)


def _last_border(block):
    """Returns the last place in bytes where a stretch may end; 0 if there is none."""
    line_end = block.rfind(b"\n") + 1
    if line_end:
        return line_end
    # The first bytes of U+5000 to U+9FFF, all of them CJK characters.
    firsts = (block.rfind(first) for first in (b"\xe5", b"\xe6", b"\xe7", b"\xe8", b"\xe9"))
    return max(0, block.rfind(b" ") + 1, *firsts)


def decoded(text, path):
    """Returns bytes of a text file as str.

    Args:
      text: bytes of whole characters.
      path: the file. It is read again to find the line that is not UTF-8.

    Raises:
      UserError: the bytes are not UTF-8 (with the line number).
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        collections.deque(read_lines(path), maxlen=0)
        raise UserError(f"{path}: changed while being read; start again") from error


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
