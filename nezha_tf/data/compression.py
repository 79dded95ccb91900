"""Compressed files, known by their first bytes, and files that are no text at all."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.util.errors import UserError, require_modules

BLOCK_BYTES = 1 << 20
# A tar file has this word here, and nothing but zeros or names before it.
_TAR, _TAR_PLACE = b"ustar", 257
_HEAD_BYTES = _TAR_PLACE + len(_TAR)


class Stream(io.RawIOBase):
    """The bytes that an iterator gives, as a file that is read once from its start."""

    def __init__(self, blocks):
        self._blocks, self._rest = iter(blocks), memoryview(b"")

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def stream(blocks):
    """Returns a buffered file of the bytes that an iterable gives; it cannot be sought in."""
    return io.BufferedReader(Stream(blocks), BLOCK_BYTES)


class Compression(NamedTuple):
    """A way to compress a file: name, first bytes, and a function that opens what a file holds.

    The function takes an open binary file and returns a buffered one; it imports its library.
    """

    name: str
    magic: bytes
    open: Callable


def _open_zstd(raw):
    what = "the file is compressed with zstd, which needs zstandard"
    require_modules(what, "zstd", "zstandard", otherwise=", or pip install zstandard")
    import zstandard

    return stream(_unpacked(raw, zstandard))


def _unpacked(raw, zstandard):
    """Yields what zstd frames hold; the library's own reader takes a cut one for whole."""
    frame = None
    while block := raw.read(BLOCK_BYTES):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(block)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame:
        raise EOFError("it ends before its end mark")


COMPRESSIONS = (
    Compression("gzip", b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    Compression("bzip2", b"BZh", bz2.BZ2File),
    Compression("xz", b"\xfd7zXZ\0", lzma.LZMAFile),
    Compression("zstd", b"\x28\xb5\x2f\xfd", _open_zstd),
)
# Endings that are left out before a file's kind is read off its name.
ENDINGS = (".gz", ".bz2", ".xz", ".zst")
# What compressed files raise that are damaged, or an OSError without a number.
DAMAGE = (EOFError, zlib.error, lzma.LZMAError)

PARQUET = b"PAR1"
_UNPACK = "unpack it, and name the files in it"
_AS_TEXT = "save it as text"
# The first bytes of files that hold no text as it is, with what they are and what helps.
_NO_TEXT = {
    b"PK\x03\x04": ("a zip file", _UNPACK),
    b"PK\x05\x06": ("an empty zip file", _UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z file", _UNPACK),
    b"Rar!\x1a\x07": ("a rar file", _UNPACK),
    b"%PDF-": ("a PDF file", _AS_TEXT),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("a file of an older Word or Excel", _AS_TEXT),
    b"{\\rtf": ("an RTF file", _AS_TEXT),
    b"SQLite format 3\0": ("an SQLite database", "export its texts"),
    b"\x93NUMPY": ("a NumPy array", "write its texts as lines"),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", "write its texts as lines"),
    b"ARROW1\0\0": ("an Arrow file", "write it as Parquet or JSON lines"),
    PARQUET: ("a Parquet file", "write its rows as JSON lines"),
}


def compression_of(file):
    """Returns the `Compression` of an open, buffered file, or None."""
    head = file.peek(_HEAD_BYTES)
    return next((kind for kind in COMPRESSIONS if head.startswith(kind.magic)), None)


def unpacked(path, file, with_parquet=False):
    """Returns a file of the uncompressed bytes of an open file; the file itself if it has them.

    Args:
      path: its name, for messages.
      file: a buffered binary file, at its start.
      with_parquet: whether the caller reads Parquet.

    Raises:
      UserError: it is an archive, or another file that holds no text as it is; or the library that
        reads it is missing.
    """
    found = compression_of(file)
    if found:
        try:
            file = found.open(file)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    _require_text(path, file, found, with_parquet and not found)
    return file


def unpacked_name(path):
    """Returns a path without the ending of a compression."""
    ending = next((end for end in ENDINGS if path.lower().endswith(end)), "")
    return path[: len(path) - len(ending)]


def bare_name(path):
    """Returns a path in lower case without the ending of a compression, to compare endings."""
    return unpacked_name(path).lower()


def _require_text(path, file, found, with_parquet):
    head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    kinds = (kind for magic, kind in _NO_TEXT.items() if head.startswith(magic))
    what, advice = next(kinds, ("", ""))
    if head[_TAR_PLACE:] == _TAR:
        what, advice = "a tar file", _UNPACK
    if found and compression_of(file):
        what, advice = "compressed twice", "decompress it once"
    if what and not (with_parquet and head.startswith(PARQUET)):
        raise UserError(f"{path} is {what}, which is not read here; {advice}")
