"""Splits paragraphs into sentences."""

import re

# A full stop of Latin script ends no sentence here: it stands in numbers and names, too. Its ! and
# ? do, unless something of an address or a name follows ("a.cn/?b=1").
_END = re.compile(r"(?:[。！？；…｡]|[!?](?![A-Za-z0-9/=&_#%]))+")
_CLOSING = re.compile(r"[”’」』﹂﹄）】》〉〕］｝｠»)\]}]*")
# A quote of this kind opens and closes; it closes where an odd number of it stands before.
_BOTH = ('"', "'", "＂", "＇")
# What goes on with a sentence whose quotation has just ended.
_GOES_ON = tuple("，、：,:")


def split_lines(lines):
    """Yields lines, in bytes, split into sentences, each on a line; what is no UTF-8 stays.

    Args:
      lines: iterable of bytes, each a line with its line end.
    """
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
