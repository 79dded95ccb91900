"""Documents of a corpus of any size, one after the other, as bytes."""

import collections
import hashlib
import re
from typing import NamedTuple

import google_crc32c

from nezha_tf import console, storage
from nezha_tf.data.corpus import open_text, read_lines
from nezha_tf.errors import UserError

BLOCK_BYTES = 1 << 20
# A longer document is cut at the end of a line, so that a corpus without blank lines fits too.
LONGEST_DOCUMENT = 4 << 20

# What `str.strip` takes away, in UTF-8, but for the line feed.
_SPACE = (
    rb"[\t\x0b-\r\x1c-\x20]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80"
)
_BETWEEN_DOCUMENTS = re.compile(rb"\n(?:(?:" + _SPACE + rb")*+\n)++")
_BLANK_LINES = re.compile(rb"(?:(?:" + _SPACE + rb")*+\n)*+")
_BLANK = re.compile(rb"(?:\n|" + _SPACE + rb")*+\Z")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Documents(NamedTuple):
    """How many documents there are, and how many bytes are in them."""

    count: int = 0
    bytes: int = 0

    def plus(self, length):
        """Returns the sum with a document of so many bytes."""
        return Documents(self.count + 1, self.bytes + length)

    def minus(self, length):
        """Returns the difference to a document of so many bytes."""
        return Documents(self.count - 1, self.bytes - length)


class RawDocument(NamedTuple):
    """A document as it stands in a file.

    Attributes:
      text: bytes.
      offset: where they begin in what the file holds, uncompressed.
      was_cut: whether the document was too long and goes on as the next one, if it is not only
        white space that was left of it.
    """

    text: bytes
    offset: int
    was_cut: bool


class Measure(NamedTuple):
    """What going through a corpus once tells of it.

    Attributes:
      inputs: list of dicts, a file each: `file`, `documents`, `bytes` (of text, uncompressed).
      crc32c: of the whole text and the borders of its documents, 8 hexadecimal digits.
      training, held_out: the `Documents` of either set.
      threshold: documents with a `draw_of` below it are held out.
      blank_files: files without text.
      cut_documents: places where a document was too long and was cut.
    """

    inputs: list
    crc32c: str
    training: Documents
    held_out: Documents
    threshold: float
    blank_files: int
    cut_documents: int


def raw_documents(path, start=0):
    """Yields the documents of a text file as `RawDocument`s.

    A document ends at a line without text, or with the file; a byte order mark at the file's
    start is left out. A document longer than `LONGEST_DOCUMENT` bytes is cut at the last end
    of a line before them, or in a line between two characters, and goes on as the next one.

    Args:
      path: a text file, `.gz` too, local or remote.
      start: the offset of one of its documents, to begin there; compressed text is read up to it.

    Raises:
      UserError: the file cannot be read, or its compression is damaged.
    """
    with open_text(path) as file:
        if start:
            file.seek(start)
        rest, offset = file.read(BLOCK_BYTES), start
        if not start and rest.startswith(_BYTE_ORDER_MARK):
            offset = len(_BYTE_ORDER_MARK)
            rest = rest[offset:]
        while rest:
            block = file.read(BLOCK_BYTES)
            begin = 0
            for border in _BETWEEN_DOCUMENTS.finditer(rest):
                yield from _cut(rest[begin : border.start()], offset + begin)
                begin = border.end()
            rest, offset = _from_text_on(rest, begin, offset)
            if not block:
                yield from _cut(rest, offset)
                return
            # The further block shows whether the document ends there by itself.
            while len(rest) > LONGEST_DOCUMENT + BLOCK_BYTES:
                end = _end_of_part(rest)
                yield from _part(rest, end, offset, True)
                rest, offset = _from_text_on(rest, end, offset)
            rest += block


def _from_text_on(rest, begin, offset):
    """Returns what is left from a place on without blank lines ahead of it, and its offset.

    So a document begins at its text wherever the blocks have parted the blank lines before it,
    and is cut at the same places.
    """
    begin = _BLANK_LINES.match(rest, begin).end()
    return rest[begin:], offset + begin


def _cut(text, offset):
    """Yields a document in parts of bounded length; nothing of one that is blank."""
    text, offset = _from_text_on(text, 0, offset)
    while len(text) > LONGEST_DOCUMENT:
        end = _end_of_part(text)
        yield from _part(text, end, offset, True)
        text, offset = _from_text_on(text, end, offset)
    yield from _part(text, len(text), offset, False)


def _part(text, end, offset, was_cut):
    """Yields what there is of a document up to a place, where that is not blank."""
    if not _BLANK.match(text, 0, end):
        yield RawDocument(text[:end], offset, was_cut)


def _end_of_part(text):
    """Returns where the first part of a text that is too long ends."""
    end = text.rfind(b"\n", 0, LONGEST_DOCUMENT) + 1 or LONGEST_DOCUMENT
    while end > LONGEST_DOCUMENT - 4 and text[end] & 0xC0 == 0x80:  # within a character
        end -= 1
    return end


def draw_of(seed, number):
    """Returns a number in [0, 1) for a document, whatever else is in the corpus.

    Args:
      seed: the random seed.
      number: the document's number in the corpus, from 0.
    """
    digest = hashlib.blake2b(f"held out {seed} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53


def measure(paths, seed, held_out_share, refuse_invalid):
    """Goes through a corpus without holding more than a document of it.

    Args:
      paths: its files, in order.
      seed: the random seed.
      held_out_share: share of the documents that is held out; 0 for none. Of two documents or
        more at least one is on either side.
      refuse_invalid: whether bytes that are not UTF-8 are an error.

    Returns:
      A `Measure`.

    Raises:
      UserError: no text, too little to hold some out, a file that cannot be read or, where
        these are refused, bytes that are not UTF-8 (with file and line).
    """
    inputs, crc, number, blank_files, cut_documents = [], 0, 0, 0, 0
    split = _Split(held_out_share)
    sizes = list(map(storage.size, paths))
    bar = console.progress(total=sum(sizes), desc="measuring", unit="B", unit_scale=True)
    for path, size in zip(paths, sizes, strict=True):
        found = Documents()
        for text, _, was_cut in raw_documents(path):
            if refuse_invalid:
                _refuse_invalid(text, path)
            crc = google_crc32c.extend(google_crc32c.extend(crc, text), b"\n\n")
            split.add(draw_of(seed, number) if held_out_share else 1.0, len(text))
            found = found.plus(len(text))
            cut_documents += was_cut
            number += 1
            # Of compressed text it is known when the file ends how much has been read.
            told = 0 if path.endswith(".gz") else len(text)
            size -= told
            bar.update(told)
        bar.update(size)
        inputs.append({"file": path, "documents": found.count, "bytes": found.bytes})
        blank_files += not found.count
    bar.close()
    if not number:
        raise UserError(f"{', '.join(paths)}: no text in it; write one sentence a line")
    if held_out_share and number < 2:
        raise UserError("--eval_output_file needs a corpus of at least 2 documents")
    return Measure(inputs, f"{crc:08x}", *split.settled(), blank_files, cut_documents)


class _Split:
    """Counts the documents on either side of a share, and moves one where a side has none."""

    def __init__(self, share):
        self._share = share
        self._sides = [Documents(), Documents()]  # training, held out
        self._lowest, self._highest = (2.0, 0), (-1.0, 0)  # (draw, bytes)

    def add(self, draw, length):
        """Counts a document by its draw; it has so many bytes."""
        is_held_out = draw < self._share
        self._sides[is_held_out] = self._sides[is_held_out].plus(length)
        self._lowest = min(self._lowest, (draw, length))
        self._highest = max(self._highest, (draw, length))

    def settled(self):
        """Returns (training, held out, threshold): two `Documents`, and the share made to fit."""
        training, held_out = self._sides
        if self._share and not held_out.count:
            draw, length = self._lowest
            return training.minus(length), held_out.plus(length), draw + 2**-53
        if self._share and not training.count:
            draw, length = self._highest
            return training.plus(length), held_out.minus(length), draw
        return training, held_out, self._share


def _refuse_invalid(text, path):
    """Raises a `UserError` with the line where a document is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        try:
            collections.deque(read_lines(path), maxlen=0)
        except UserError as error:
            raise UserError(f"{error}, or choose --on_invalid=replace or skip") from error
        raise
