"""Reads the documents of a corpus of any size one after another, and splits them into sentences."""

import functools
import hashlib
from typing import NamedTuple

import google_crc32c

from nezha_tf.data.corpus import NotUtf8, decoded, is_packed, open_text
from nezha_tf.data.text_forms import PLAIN
from nezha_tf.text.characters import INVISIBLE_RANGES, is_blank
from nezha_tf.util import console, storage
from nezha_tf.util.errors import UserError

BLOCK_BYTES = 1 << 20
# Longer documents are cut at a line end, so that a corpus without blank lines fits in memory too.
LONGEST_DOCUMENT = 4 << 20
# Longer lines are cut, because the memory of word segmentation grows with a line's length.
LONGEST_LINE = 10_000
# The kinds of anomaly in lines, and what the report says of such lines.
ANOMALIES = {
    "long_lines": f"of more than {LONGEST_LINE:,} characters, cut (one sentence per line?)",
    "invalid_lines": "with bytes that are not UTF-8",
}


# Most lines begin with none of these bytes, so that they need not be decoded.
_FIRSTS = {chr(c).encode()[0] for low, high in INVISIBLE_RANGES for c in range(low, high + 1)}
_MARK = b"\xef\xbb\xbf"  # of byte order
_LINE_FEED = ord("\n")


class CorpusChanged(UserError):
    """The text is not the one that was measured."""


class Documents(NamedTuple):
    """The number of documents and of their bytes."""

    count: int = 0
    bytes: int = 0

    def plus(self, length, count=1):
        """Returns the counts with `count` documents (1 or -1) of `length` bytes more."""
        return Documents(self.count + count, self.bytes + count * length)


class RawDocument(NamedTuple):
    """A document of a file: its text as bytes, and its offset in bytes of the uncompressed file.

    `was_cut` says whether the document was too long and was cut here. The rest follows as the next
    document, unless it is only white space.
    """

    text: bytes
    offset: int
    was_cut: bool


class Measure(NamedTuple):
    """The result of a first pass over a corpus."""

    inputs: list  # of a dict for each file: `file`, `documents`, `bytes` (of uncompressed text)
    crc32c: str  # of all text and the borders of documents, 8 hexadecimal digits
    training: Documents
    held_out: Documents
    threshold: float  # documents with a `draw_of` below it are held out
    blank_files: int  # number of files without text
    cut_documents: int  # number of places where a document was cut because it was too long


def raw_documents(path, start=0, reading=PLAIN):
    """Yields the documents of a file of a corpus as `RawDocument`s.

    A document ends at a blank line or at the end of the file; a byte order mark is left out. One of
    more than `LONGEST_DOCUMENT` bytes is cut at the last line end within them, or between two
    characters if there is none; the rest is the next document. `start` is the offset of the
    document to begin with; files that are compressed or not in plain text are read up to it.

    Raises:
      UserError: the file cannot be read, or its compression is damaged.
    """
    with open_text(path, reading) as file:
        mark = 0 if start else len(_MARK) * file.peek(len(_MARK)).startswith(_MARK)
        _skip(file, start or mark)
        offset, lines, length = start or mark, [], 0  # of the document
        is_begun = False  # whether `line` goes on a longer one
        for line in iter(functools.partial(file.readline, LONGEST_DOCUMENT), b""):
            ends = line[-1] == _LINE_FEED
            if line[0] in _FIRSTS and ends and not is_begun and _is_blank(line):
                if lines:
                    yield from _parts(b"".join(lines).removesuffix(b"\n"), offset)
                offset, lines, length = offset + length + len(line), [], 0
            else:
                lines.append(line)
                length += len(line)
            # With as much again, it is known whether the document ends here anyway.
            while length > 2 * LONGEST_DOCUMENT:
                text = b"".join(lines)
                end = _end_of_part(text)
                yield from _part(text[:end], offset, True)
                offset, lines, length = offset + end, [text[end:]], length - end
            is_begun = not ends
        yield from _parts(b"".join(lines), offset)


def _skip(file, count):
    if count and file.seekable():
        file.seek(count)
    while count and not file.seekable():
        count -= len(file.read(min(count, BLOCK_BYTES))) or count


def _is_blank(line):
    return line[0] in _FIRSTS and is_blank(line.decode(errors="replace"))


def _parts(text, offset):
    """Yields a document in parts of bounded length; a blank document gives none."""
    while len(text) > LONGEST_DOCUMENT:
        end = _end_of_part(text)
        yield from _part(text[:end], offset, True)
        text, offset = text[end:], offset + end
    yield from _part(text, offset, False)


def _part(text, offset, was_cut):
    if text and not _is_blank(text):
        yield RawDocument(text, offset, was_cut)


def _end_of_part(text):
    end = text.rfind(b"\n", 0, LONGEST_DOCUMENT) + 1 or LONGEST_DOCUMENT
    while end > LONGEST_DOCUMENT - 4 and text[end] & 0xC0 == 0x80:  # inside a UTF-8 character
        end -= 1
    return end


def checksum_of(documents, before=0):
    """Returns the CRC-32C, an int, of (number, text) of documents that follow those of `before`."""
    crc = before
    for _, text in documents:
        crc = google_crc32c.extend(google_crc32c.extend(crc, text), b"\n\n")
    return crc


def draw_of(seed, number):
    """Returns the draw in [0, 1) of a document by its number in the corpus."""
    digest = hashlib.blake2b(f"held out {seed} {number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53


def read_with_progress(paths, label, read, length_of=len):
    """Yields (path, part) for the parts that `read(path)` yields, and shows progress in bytes."""
    sizes = list(map(storage.size, paths))
    with console.progress(total=sum(sizes), desc=label, unit="B", unit_scale=True) as bar:
        for path, left in zip(paths, sizes, strict=True):
            packed = is_packed(path)
            for part in read(path):
                yield path, part
                # For a compressed file, the bytes that were read are known only at its end.
                done = 0 if packed else min(length_of(part), left)
                left -= done
                bar.update(done)
            bar.update(left)


def measure(paths, seed, held_out_share, reading=PLAIN):
    """Reads a corpus once and returns its `Measure`; it holds one document in memory at a time.

    If the share of documents to hold out is above 0, each of the two sets gets at least one.

    Raises:
      UserError: there is no text, or too little to hold some out; a file cannot be read; or,
        with `on_invalid` "error", bytes are not in the encoding (with file and line).
    """
    crc, number, cut_documents = 0, 0, 0
    of_files = dict.fromkeys(paths, Documents())
    sides = [Documents(), Documents()]  # training, held out
    lowest, highest = (2.0, 0), (-1.0, 0)  # (draw, bytes)
    documents = read_with_progress(
        paths,
        "measuring",
        lambda path: raw_documents(path, 0, reading),
        lambda part: len(part.text),
    )
    for path, (text, _, was_cut) in documents:
        if reading.on_invalid == "error":
            _refuse_invalid(text, path)
        crc = checksum_of([(number, text)], crc)
        draw = draw_of(seed, number) if held_out_share else 1.0
        is_held_out = draw < held_out_share
        sides[is_held_out] = sides[is_held_out].plus(len(text))
        lowest, highest = min(lowest, (draw, len(text))), max(highest, (draw, len(text)))
        of_files[path] = of_files[path].plus(len(text))
        cut_documents += was_cut
        number += 1
    if not number:
        raise UserError(f"{', '.join(paths)}: no text found; write one sentence per line")
    if held_out_share and number < 2:
        raise UserError("--eval_output_file needs a corpus of at least 2 documents")
    training, held_out = sides
    threshold = held_out_share
    if threshold and not held_out.count:
        draw, length = lowest
        training, held_out = training.plus(length, -1), held_out.plus(length)
        threshold = draw + 2**-53
    elif threshold and not training.count:
        threshold, length = highest
        training, held_out = training.plus(length), held_out.plus(length, -1)
    inputs = [
        {"file": path, "documents": total.count, "bytes": total.bytes}
        for path, total in of_files.items()
    ]
    blank_files = sum(not total.count for total in of_files.values())
    return Measure(inputs, f"{crc:08x}", training, held_out, threshold, blank_files, cut_documents)


def _refuse_invalid(text, path):
    try:
        decoded(text, path)
    except NotUtf8 as error:
        advice = "choose --on_invalid=replace or skip"
        if error.likeliest:
            advice = f"pass --encoding={error.likeliest}"
        raise UserError(f"{error}, or {advice}") from error


def sentences_of(text, on_invalid, anomalies):
    """Returns the sentences of a document: str that are not blank, stripped of white space.

    Args:
      text: bytes, one sentence per line. Longer lines than `LONGEST_LINE` characters are cut.
      on_invalid: "replace" replaces bytes that are not UTF-8 by U+FFFD, which the tokenizer drops;
        "skip" leaves the line out; "error" raises.
      anomalies: a Counter of `ANOMALIES`; it is updated.

    Raises:
      UnicodeDecodeError: `on_invalid` is "error" and bytes are not UTF-8.
    """
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError:
        if on_invalid == "error":
            raise
        lines = _decodable(text.split(b"\n"), on_invalid, anomalies)
    sentences = []
    for line in lines:
        sentence = line.strip()
        if len(sentence) > LONGEST_LINE:
            anomalies["long_lines"] += 1
            starts = range(0, len(sentence), LONGEST_LINE)
            parts = (sentence[start : start + LONGEST_LINE].strip() for start in starts)
            sentences.extend(part for part in parts if not is_blank(part))
        elif not is_blank(sentence):
            sentences.append(sentence)
    return sentences


def _decodable(lines, on_invalid, anomalies):
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            anomalies["invalid_lines"] += 1
            if on_invalid == "replace":
                yield line.decode(errors="replace")
