"""Text in other encodings than UTF-8, and the guess which one a text has."""

import codecs
import functools

from nezha_tf.data.compression import BLOCK_BYTES, stream
from nezha_tf.text.characters import common_characters
from nezha_tf.util.errors import UserError

UTF_8 = "utf-8"
_CANDIDATES = (UTF_8, "gb18030", "big5", "utf-16-le", "utf-16-be")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# Of a Chinese text read in its own encoding, a larger share of characters is common; of one read
# in another, a smaller share. Between the two nothing is said.
LIKELY, UNLIKELY = 0.85, 0.6
_SAMPLE_BYTES = 8192
# What is put where bytes have no meaning; it becomes a byte that is never in UTF-8.
_INVALID = "nezha_tf_invalid"
codecs.register_error(_INVALID, lambda error: ("\udcff", error.end))


def check_encoding(name):
    """Raises a `UserError` if Python has no text encoding of this name."""
    try:
        "".encode(name)
    except (LookupError, ValueError, UnicodeError) as error:
        raise UserError(
            f"--encoding={name!r} is not known; Chinese texts are mostly in utf-8, gb18030 (gbk), "
            "big5 or utf-16"
        ) from error


def is_utf_8(name):
    """Whether an encoding is UTF-8, whose byte order mark readers leave out anyway."""
    return codecs.lookup(name).name in (UTF_8, "utf-8-sig")


def likeliest(sample):
    """Returns the encoding that a text most likely has by some bytes of it, or None."""
    for mark, name in _MARKS.items():
        if sample.startswith(mark):
            return name.removesuffix("-sig").removesuffix("-le").removesuffix("-be")
    shares = {name: _common_share(sample, name) for name in _CANDIDATES}
    best = max(shares, key=shares.get)
    return best if shares[best] >= LIKELY else None


def recoded(path, file, encoding, on_invalid):
    """Returns a file of the same text in UTF-8.

    Args:
      path: the file's name, for messages.
      file: a buffered binary file, at its start.
      encoding: the encoding of its text.
      on_invalid: "error": what is not in this encoding is a `UserError` with the line; else it
        becomes a byte that is not UTF-8, for those who read the text.

    Raises:
      UserError: the text's beginning is most likely in another encoding.
    """
    sample = file.peek(_SAMPLE_BYTES)[:_SAMPLE_BYTES]
    _require_likely(path, sample, encoding)
    mark = next((mark for mark in _MARKS if sample.startswith(mark)), b"")
    if codecs.lookup(encoding).name == "utf-16":
        encoding = _MARKS.get(mark, "utf-16-le")  # by default, as Windows writes it
    if mark and _MARKS[mark] == codecs.lookup(encoding).name:
        file.read(len(mark))
    return stream(_utf_8(path, file, encoding, on_invalid))


def _utf_8(path, file, encoding, on_invalid):
    strict = on_invalid == "error"
    decoder = codecs.getincrementaldecoder(encoding)("strict" if strict else _INVALID)
    lines, block = 0, True
    while block:
        block = file.read(BLOCK_BYTES)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            whole = error.object[: error.start].decode(encoding, "ignore")
            raise UserError(
                f"{path}, line {lines + whole.count(chr(10)) + 1}: not {encoding}{_hint(error)}"
            ) from error
        lines += text.count("\n")
        yield text.encode("utf-8", "strict" if strict else "surrogateescape")


def _hint(error):
    found = likeliest(error.object[:_SAMPLE_BYTES])
    if found and found != error.encoding:
        return f", but most likely {found}: pass --encoding={found}"
    return "; mend the line, or choose --on_invalid=replace or skip"


def _require_likely(path, sample, encoding):
    found = likeliest(sample)
    if found is None or codecs.lookup(found).name == codecs.lookup(encoding).name:
        return
    if _common_share(sample, encoding) < UNLIKELY:
        raise UserError(
            f"{path}, line 1: not {encoding}, but most likely {found}; pass --encoding={found}"
        )


def _common_share(sample, encoding):
    """Returns the share of a text's characters that are common; -1: it is not in the encoding.

    ASCII alone says nothing: a text without other characters has 0.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(sample)
    except UnicodeDecodeError:
        return -1.0
    others = [char for char in text if char > "\x7f"]
    strange = sum(char < " " and char not in "\t\n\r\f" for char in text)
    common = _common()
    return sum(char in common for char in others) / max(len(others) + strange, 1)


@functools.cache
def _common():
    marks = [*range(0x3000, 0x3020), *range(0xFF01, 0xFF5F), *range(0x2010, 0x2027), 0xB7, 0xA0]
    return frozenset([*common_characters(), *map(chr, marks), "\ufeff"])
