"""What CLUE's tasks make of the fields of a row before it is a text or a pair of texts."""

import json


def marked_spans(text, target):
    """Returns the text of CLUEWSC with its two spans marked, as CLUE's baseline does.

    The first span (the noun) stands between `_`, the second (the pronoun) between `[` and `]`.

    Args:
      text: the text, with the white space at its ends.
      target: JSON text {"span1_text", "span1_index", "span2_text", "span2_index"}; places are
        counted in characters from 0.

    Returns:
      (text, None).

    Raises:
      ValueError: a span is not at its place, or the spans overlap; the message says which.
    """
    spans = []
    for number, marks in ((1, "__"), (2, "[]")):
        span, start = _span(target, number)
        if text[start : start + len(span)] != span or start < 0:
            raise ValueError(f"span{number}_text {span[:20]!r} is not at character {start}")
        spans.append((start, start + len(span), marks))
    (_, first_end, _), (second_start, _, _) = spans = sorted(spans)
    if second_start < first_end:
        raise ValueError(f"the spans at {spans[0][:2]} and {spans[1][:2]} overlap")
    for start, end, marks in reversed(spans):
        text = f"{text[:start]}{marks[0]}{text[start:end]}{marks[1]}{text[end:]}"
    return text, None


def keywords_first(abstract, keywords):
    """Returns the pair of CSL: the keywords, with spaces between them, and the abstract.

    Args:
      abstract: text.
      keywords: JSON text, a list of texts.

    Raises:
      ValueError: the keywords are no such list.
    """
    found = _json(keywords)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise ValueError('"keyword" is not a list of texts')
    return " ".join(found), abstract


def _span(target, number):
    found = _json(target)
    found = found if isinstance(found, dict) else {}
    span, start = (found.get(f"span{number}_{name}") for name in ("text", "index"))
    if not isinstance(span, str) or not span or type(start) is not int:
        raise ValueError(f'"target" lacks span{number}_text (a text) or span{number}_index')
    return span, start


def _json(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
