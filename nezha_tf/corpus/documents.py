"""Reads the documents of a corpus of any size one after another, as bytes."""

import collections
import hashlib
import re
from typing import NamedTuple

import google_crc32c

from nezha_tf.data.corpus import NotUtf8, decoded, is_packed, open_text
from nezha_tf.data.text_forms import PLAIN
from nezha_tf.text.characters import INVISIBLE_RANGES
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError

BLOCK_BYTES = 1 << 20
# Longer documents are cut at a line end, so that a corpus without blank lines fits in memory too.
LONGEST_DOCUMENT = 4 << 20


def _invisible():
    """Returns two patterns of bytes: the characters of `is_blank` but the line feed; their firsts.

    A run of those that differ in their last byte is one step, as steps are what costs: a small
    compressed file can hold many megabytes of blanks.
    """
    last = collections.defaultdict(bytearray)
    for low, high in INVISIBLE_RANGES:
        for code in range(low, high + 1):
            *before, end = chr(code).encode()
            last[bytes(before)].append(end)
    last[b""].remove(ord("\n"))
    runs = (
        b"(?:" + before + b"[" + b"".join(re.escape(bytes([end])) for end in ends) + b"])++"
        for before, ends in last.items()
    )
    firsts = {before[:1] for before in last if before} | {bytes([end]) for end in last[b""]}
    return b"|".join(runs), b"".join(map(re.escape, sorted(firsts)))


_SPACE, _FIRSTS = _invisible()
# Most lines begin with no such byte, so that the first look ends the search.
_BETWEEN_DOCUMENTS = re.compile(rb"\n(?=[\n" + _FIRSTS + rb"])(?:(?:" + _SPACE + rb")*+\n)++")
_BLANK_LINES = re.compile(rb"(?:(?:" + _SPACE + rb")*+\n)*+")
_BLANK = re.compile(rb"(?:\n|" + _SPACE + rb")*+\Z")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CorpusChanged(UserError):
    """The text is not the one that was measured."""


class Documents(NamedTuple):
    """The number of documents and of their bytes."""

    count: int = 0
    bytes: int = 0

    def plus(self, length):
        """Returns the counts with one more document of `length` bytes."""
        return Documents(self.count + 1, self.bytes + length)

    def minus(self, length):
        """Returns the counts with one document of `length` bytes less."""
        return Documents(self.count - 1, self.bytes - length)


class RawDocument(NamedTuple):
    """A document of a file.

    Attributes:
      text: bytes.
      offset: where the text begins, in bytes of the uncompressed file.
      was_cut: whether the document was too long and was cut here. The rest follows as the next
        document, unless it is only white space.
    """

    text: bytes
    offset: int
    was_cut: bool


class Measure(NamedTuple):
    """The result of a first pass over a corpus.

    Attributes:
      inputs: list of a dict for each file: `file`, `documents`, `bytes` (of uncompressed text).
      crc32c: CRC-32C of all text and the borders of documents, 8 hexadecimal digits.
      training, held_out: the `Documents` of the two sets.
      threshold: documents with a `draw_of` below it are held out.
      blank_files: number of files without text.
      cut_documents: number of places where a document was cut because it was too long.
    """

    inputs: list
    crc32c: str
    training: Documents
    held_out: Documents
    threshold: float
    blank_files: int
    cut_documents: int


def raw_documents(path, start=0, reading=PLAIN):
    """Yields the documents of a file of a corpus as `RawDocument`s.

    A document ends at a blank line or at the end of the file. A byte order mark at the file's
    start is left out. A document of more than `LONGEST_DOCUMENT` bytes is cut at the last line
    end within them, or between two characters if there is none; the rest is the next document.

    Args:
      path: a file, local or remote.
      start: the offset of the document to begin with; files that are compressed or not in plain
        text are read up to it.
      reading: `text_forms.Reading`.

    Raises:
      UserError: the file cannot be read, or its compression is damaged.
    """
    with open_text(path, reading) as file:
        _skip(file, start)
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
            # With as much again in `rest`, it is known whether the document ends here anyway,
            # unless white space as long as a document follows.
            while len(rest) > 2 * LONGEST_DOCUMENT:
                end = _end_of_part(rest)
                yield from _part(rest, end, offset, True)
                rest, offset = _from_text_on(rest, end, offset)
            rest += block


def _skip(file, count):
    """Goes forward in a file that has just been opened."""
    if count and file.seekable():
        file.seek(count)
    while count and not file.seekable():
        count -= len(file.read(min(count, BLOCK_BYTES))) or count


def _from_text_on(rest, begin, offset):
    """Returns the text from a place on, without leading blank lines, and its offset.

    So a document always begins at its text and is cut at the same places, even if a block ends
    within the blank lines before it.
    """
    begin = _BLANK_LINES.match(rest, begin).end()
    return rest[begin:], offset + begin


def _cut(text, offset):
    """Yields a document in parts of bounded length; a blank document gives none."""
    text, offset = _from_text_on(text, 0, offset)
    while len(text) > LONGEST_DOCUMENT:
        end = _end_of_part(text)
        yield from _part(text, end, offset, True)
        text, offset = _from_text_on(text, end, offset)
    yield from _part(text, len(text), offset, False)


def _part(text, end, offset, was_cut):
    """Yields the first `end` bytes of a text as a `RawDocument`, unless they are blank."""
    if not _BLANK.match(text, 0, end):
        yield RawDocument(text[:end], offset, was_cut)


def _end_of_part(text):
    """Returns the end of the first part of a text that is too long."""
    end = text.rfind(b"\n", 0, LONGEST_DOCUMENT) + 1 or LONGEST_DOCUMENT
    while end > LONGEST_DOCUMENT - 4 and text[end] & 0xC0 == 0x80:  # inside a UTF-8 character
        end -= 1
    return end


def draw_of(seed, number):
    """Returns a document's number in [0, 1), which does not depend on other documents.

    Args:
      seed: the random seed.
      number: the document's number in the corpus, from 0.
    """
    digest = hashlib.blake2b(f"held out {seed} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53


def measure(paths, seed, held_out_share, reading=PLAIN):
    """Reads a corpus once and counts its documents; it holds one document in memory at a time.

    Args:
      paths: its files, in order.
      seed: the random seed.
      held_out_share: share of the documents to hold out; 0: none. If it is above 0, each of the
        two sets gets at least one document.
      reading: `text_forms.Reading`.

    Returns:
      A `Measure`.

    Raises:
      UserError: there is no text, or too little to hold some out; a file cannot be read; or,
        with `on_invalid` "error", bytes are not in the encoding (with file and line).
    """
    inputs, crc, number, blank_files, cut_documents = [], 0, 0, 0, 0
    split = _Split(held_out_share)
    sizes = list(map(storage.size, paths))
    bar = console.progress(total=sum(sizes), desc="measuring", unit="B", unit_scale=True)
    for path, size in zip(paths, sizes, strict=True):
        found, packed = Documents(), is_packed(path)
        for text, _, was_cut in raw_documents(path, 0, reading):
            if reading.on_invalid == "error":
                _refuse_invalid(text, path)
            crc = google_crc32c.extend(google_crc32c.extend(crc, text), b"\n\n")
            split.add(draw_of(seed, number) if held_out_share else 1.0, len(text))
            found = found.plus(len(text))
            cut_documents += was_cut
            number += 1
            # For a compressed file, the bytes that were read are known only at its end.
            told = 0 if packed else min(len(text), size)
            size -= told
            bar.update(told)
        bar.update(size)
        inputs.append({"file": path, "documents": found.count, "bytes": found.bytes})
        blank_files += not found.count
    bar.close()
    if not number:
        raise UserError(f"{', '.join(paths)}: no text found; write one sentence per line")
    if held_out_share and number < 2:
        raise UserError("--eval_output_file needs a corpus of at least 2 documents")
    return Measure(inputs, f"{crc:08x}", *split.settled(), blank_files, cut_documents)


class _Split:
    """Counts training and held-out documents; moves one if a set would be empty."""

    def __init__(self, share):
        self._share = share
        self._sides = [Documents(), Documents()]  # training, held out
        self._lowest, self._highest = (2.0, 0), (-1.0, 0)  # (draw, bytes)

    def add(self, draw, length):
        """Counts a document of `length` bytes by its draw."""
        is_held_out = draw < self._share
        self._sides[is_held_out] = self._sides[is_held_out].plus(length)
        self._lowest = min(self._lowest, (draw, length))
        self._highest = max(self._highest, (draw, length))

    def settled(self):
        """Returns (training, held out, threshold): two `Documents` and the adjusted share."""
        training, held_out = self._sides
        if self._share and not held_out.count:
            draw, length = self._lowest
            return training.minus(length), held_out.plus(length), draw + 2**-53
        if self._share and not training.count:
            draw, length = self._highest
            return training.plus(length), held_out.minus(length), draw
        return training, held_out, self._share


def _refuse_invalid(text, path):
    """Raises a `UserError` with the line number if a document is not UTF-8."""
    try:
        decoded(text, path)
    except NotUtf8 as error:
        advice = "choose --on_invalid=replace or skip"
        if error.likeliest:
            advice = f"pass --encoding={error.likeliest}"
        raise UserError(f"{error}, or {advice}") from error
