"""The forms of a corpus: plain text, JSON lines and arrays, Parquet. All are read as plain text.

Plain text has a sentence on each line, and a blank line between documents. The other forms become
a stream of such text, so that all that follows is the same for each form.
"""

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from nezha_tf.data.compression import PARQUET, bare_name, stream
from nezha_tf.data.encodings import UTF_8, check_encoding, is_utf_8, likeliest, recoded
from nezha_tf.text.characters import is_blank
from nezha_tf.util.errors import UserError, require_modules

# The fields that are read where none are named: the first of them that a row has.
DEFAULT_FIELDS = ("text", "content")
_HEAD_BYTES = 4096
_MARK = "(?:\ufeff)?".encode()
_OBJECT = re.compile(_MARK + rb'\s*\{\s*"[^"\\]*"\s*:')
_ARRAY = re.compile(_MARK + rb'\s*\[\s*(\{\s*("[^"\\]*"\s*:|\})|\]\s*\Z)')
_MOST_KEYS_NAMED = 10
# A full stop of Latin script ends no sentence here: it stands in numbers and names, too. Its ! and
# ? do, unless something of an address or a name follows ("a.cn/?b=1").
_END = re.compile(r"(?:[。！？；…｡]|[!?](?![A-Za-z0-9/=&_#%]))+")
_CLOSING = re.compile(r"[”’」』﹂﹄）】》〉〕］｝｠»)\]}]*")
# A quote of this kind opens and closes; it closes where an odd number of it stands before.
_BOTH = ('"', "'", "＂", "＇")
# What goes on with a sentence whose quotation has just ended.
_GOES_ON = tuple("，、：,:")


class Reading(NamedTuple):
    """How the files of a corpus are read.

    Attributes:
      text_fields: the fields of JSON or Parquet that are the text of a document, in this order;
        (): `DEFAULT_FIELDS`.
      encoding: the encoding of text and JSON.
      split_sentences: whether lines are split into sentences.
      on_invalid: what becomes of bytes that are not in the encoding; see `lines.sentences_of`.
    """

    text_fields: tuple = ()
    encoding: str = UTF_8
    split_sentences: bool = False
    on_invalid: str = "error"

    def check(self):
        """Raises a `UserError` if the encoding is not known."""
        check_encoding(self.encoding)


PLAIN = Reading()


class TextForm(NamedTuple):
    """A form of a corpus.

    Attributes:
      endings: how the names of such files end.
      pattern: what such a file begins with; a file that has the ending may begin otherwise.
      read: function of (path, open file, `Reading`) that yields documents, each a list of lines.
    """

    endings: tuple
    pattern: re.Pattern
    read: Callable


def as_plain_text(path, file, reading):
    """Returns a file of the plain text that a file of any form holds.

    The file is a buffered binary one, at its start and without compression.

    Raises:
      UserError: the file is in another encoding, or the library that reads it is missing. Faults
        further behind are raised when they are read, with the line.
    """
    if not _is_parquet(file) and not is_utf_8(reading.encoding):
        file = recoded(path, file, reading.encoding, reading.on_invalid)
    form = _form_of(path, file)
    if form:
        file = stream(_plain(form.read(path, file, reading), reading))
    return stream(_split_lines(file)) if reading.split_sentences else file


def _form_of(path, file):
    """Returns the `TextForm` of a file; None: it is plain text."""
    name, head = bare_name(path), file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    by_content = next((form for form in FORMS if form.pattern.match(head)), None)
    return by_content or next((form for form in FORMS if name.endswith(form.endings)), None)


def _plain(documents, reading):
    """Yields documents as plain text, in bytes, without blank lines, which part nothing there."""
    for lines in documents:
        text = "\n".join(line for line in lines if not is_blank(line))
        if text:
            yield text.encode("utf-8", "surrogateescape") + b"\n\n"


def _read_lines(path, file, reading):
    for number, line in enumerate(file, start=1):
        place = f"{path}, line {number}"
        text = _decoded(line, place, reading, number == 1)
        if not is_blank(text):
            value = _parsed(text, place, "has an object with a text on each line")
            yield _lines_of(value, place, reading)


def _read_array(path, file, reading):
    text = _decoded(file.read(), path, reading, True)
    for number, value in enumerate(_parsed(text, path, "may be one array of objects"), start=1):
        yield _lines_of(value, f"{path}, object {number}", reading)


def _decoded(data, place, reading, is_first):
    try:
        text = data.decode(
            "utf-8", "strict" if reading.on_invalid == "error" else "surrogateescape"
        )
    except UnicodeDecodeError as error:
        found = likeliest(data)
        advice = f"pass --encoding={found}" if found else "choose --on_invalid=replace or skip"
        raise UserError(f"{place}: not UTF-8 at byte {error.start}; {advice}") from error
    return text.removeprefix("\ufeff") if is_first else text


def _parsed(text, place, what):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise UserError(f"{place}: not JSON ({reason}); a corpus in JSON {what}") from error


def _lines_of(value, place, reading):
    if not isinstance(value, dict):
        raise UserError(f'{place}: not a JSON object; write {{"text": ...}}')
    names = reading.text_fields or [name for name in DEFAULT_FIELDS if name in value][:1]
    missing = [name for name in names or DEFAULT_FIELDS if name not in value]
    if missing:
        keys = ", ".join(map(repr, list(value)[:_MOST_KEYS_NAMED])) or "no field"
        raise UserError(
            f"{place}: no field {' or '.join(map(repr, missing))}, but {keys}; name the fields "
            "with text by --text_fields"
        )
    parts = (part for name in names for part in _texts_of(value[name], name, place))
    return [line for part in parts for line in _well_formed(part, place, reading).splitlines()]


def _texts_of(value, name, place):
    texts = value if isinstance(value, list) else [] if value is None else [value]
    for text in texts:
        if not isinstance(text, str):
            raise UserError(
                f"{place}: {name!r} is neither a text nor a list of texts; name the fields with "
                "text by --text_fields"
            )
    return texts


def _well_formed(text, place, reading):
    r"""Returns a text without halves of characters (\ud800), which are treated as invalid bytes."""
    if not re.search("[\ud800-\udfff]", text):
        return text
    if reading.on_invalid == "error":
        raise UserError(
            f"{place}: the text has half a character (\\ud800 to \\udfff), which is not in UTF-8; "
            "mend it, or choose --on_invalid=replace or skip"
        )
    return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\udcff", text)


def _read_parquet(path, file, reading):
    what = f"{path} is a Parquet file, which needs pyarrow"
    require_modules(what, "parquet", "pyarrow", otherwise=", or pip install pyarrow")
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(file)
        keys = table.schema_arrow.names
        names = [name for name in reading.text_fields or DEFAULT_FIELDS if name in keys]
        _lines_of(dict.fromkeys(keys), path, reading)  # refuses fields that are not there
        number = 0
        for batch in table.iter_batches(columns=names, batch_size=1024):
            for row in batch.to_pylist():
                number += 1
                yield _lines_of(row, f"{path}, row {number}", reading)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged Parquet file ({error}); fetch it again") from error


# The first that a file begins like; else the first whose ending its name has.
FORMS = (
    TextForm((".parquet",), re.compile(PARQUET), _read_parquet),
    TextForm((), _ARRAY, _read_array),
    TextForm((".jsonl", ".ndjson", ".json"), _OBJECT, _read_lines),
)


def _is_parquet(file):
    return file.peek(len(PARQUET)).startswith(PARQUET)


def _split_lines(lines):
    """Yields lines, bytes with their ends, split into sentences; what is no UTF-8 stays."""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        body = text.rstrip("\r\n")
        end = text[len(body) :]
        yield ("\n".join(split_sentences(body)) + end).encode("utf-8", "surrogateescape")


def split_sentences(paragraph):
    """Returns the sentences of a paragraph, without changing a character.

    A sentence ends with 。！？；… (several together count once, and so do ! and ?) and the closing
    quotes and brackets behind them; not where a comma or a colon follows.

    Args:
      paragraph: str without line breaks.
    """
    sentences, start = [], 0
    for found in _END.finditer(paragraph):
        end = _behind_closing(paragraph, found.end())
        if end > start and paragraph[end : end + 1] not in _GOES_ON:
            sentences.append(paragraph[start:end])
            start = end
    rest = paragraph[start:]
    if sentences and not rest.strip():
        return [*sentences[:-1], sentences[-1] + rest]
    return [*sentences, rest]


def _behind_closing(paragraph, place):
    """Returns the place behind the closing quotes, brackets and further ends at a place."""
    before = -1
    while before != place:
        before, place = place, _CLOSING.match(paragraph, place).end()
        if (
            paragraph[place : place + 1] in _BOTH
            and paragraph.count(paragraph[place], 0, place) % 2
        ):
            place += 1
        end = _END.match(paragraph, place)
        place = end.end() if end else place
    return place
