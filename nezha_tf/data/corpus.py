"""Reads and writes a text corpus: one sentence per line, a blank line between documents."""

import collections
import contextlib
import gzip

from nezha_tf.data import compression
from nezha_tf.data.encodings import likeliest
from nezha_tf.data.text_forms import PLAIN, as_plain_text
from nezha_tf.text.characters import is_blank
from nezha_tf.util import files, storage
from nezha_tf.util.errors import UserError, first_line

STRETCH_BYTES = 2 << 20


def read_documents(path):
    """Yields the documents of a text file: lists of sentences without white space at their ends.

    Args:
      path: a UTF-8 text file, or such a file compressed in one of `compression.COMPRESSIONS`.

    Raises:
      UserError: the file cannot be read, is truncated, or is not UTF-8 (with the line number).
    """
    document = []
    for line in read_lines(path):
        if not is_blank(line):
            document.append(line.strip())
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
    """Yields the lines of a text file unchanged, with their ends; see `read_documents`."""
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                # A byte order mark does not belong to the first sentence.
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise NotUtf8.of(path, number, error) from error


def read_stretches(path, reading=PLAIN):
    """Yields the bytes of a corpus's text in stretches of about `STRETCH_BYTES`.

    A stretch ends at a line end. In a longer line it ends at a space or before a CJK character, so
    no word is cut: what has neither stays together.

    Arguments and errors are those of `open_text`; `decoded` finds what is not UTF-8.
    """
    with open_text(path, reading) as file:
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
    """Returns the last place in bytes where a stretch may end, or 0."""
    line_end = block.rfind(b"\n") + 1
    if line_end:
        return line_end
    # The first bytes of U+5000 to U+9FFF, all of them CJK characters.
    firsts = (block.rfind(first) for first in (b"\xe5", b"\xe6", b"\xe7", b"\xe8", b"\xe9"))
    return max(0, block.rfind(b" ") + 1, *firsts)


def decoded(text, path):
    """Returns bytes of a text file, whole characters, as str.

    Raises:
      UserError: the bytes are not UTF-8; the file is read again to find the line.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        collections.deque(read_lines(path), maxlen=0)
        raise UserError(f"{path}: changed while being read; start again") from error


def is_packed(path):
    """Whether a file is compressed, so that its size tells nothing of its text's."""
    try:
        with storage.open_binary(path, "rb") as file:
            return compression.compression_of(file) is not None
    except OSError as error:
        raise _unreadable(path, error) from error


@contextlib.contextmanager
def open_text(path, reading=None):
    """Opens a text file, compressed or not, to read its bytes.

    Args:
      path: the file.
      reading: the `text_forms.Reading` of a corpus, which is read as plain text in UTF-8 whatever
        its form; None: the bytes as they are.

    Raises:
      UserError: the file cannot be read, is damaged or no text; see `text_forms.as_plain_text`.
    """
    try:
        with storage.open_binary(path, "rb") as raw:
            found = compression.compression_of(raw)
            file = compression.unpacked(path, raw, with_parquet=reading is not None)
            yield file if reading is None else as_plain_text(path, file, reading)
    except (OSError, *compression.DAMAGE) as error:
        if getattr(error, "strerror", None) is None:
            raise UserError(
                f"{path}: damaged {found.name} file ({first_line(error)}); fetch it again"
            ) from error
        raise _unreadable(path, error) from error


def _unreadable(path, error):
    return UserError(f"cannot read {path}: {error.strerror}")


class NotUtf8(UserError):
    """A line of a text is not UTF-8; `likeliest` is the encoding that it may have, or None."""

    likeliest = None

    @classmethod
    def of(cls, path, number, error):
        """Returns the error of a file's line with a `UnicodeDecodeError`.

        Workers send it to their parent, which makes it anew from its message.
        """
        likely = likeliest(error.object)
        seems = f" (most likely {likely})" if likely else ""
        own = cls(
            f"{path}, line {number}: not UTF-8 at byte {error.start} of the line{seems}; convert "
            f"the file, for example with iconv -f {likely or 'gb18030'} -t utf-8"
        )
        own.likeliest = likely
        return own
