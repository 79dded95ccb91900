"""Splits the bytes of a document into sentences, and counts anomalies."""

from nezha_tf.text.characters import is_blank

# Longer lines are cut, because the memory of word segmentation grows with a line's length.
LONGEST_LINE = 10_000

# The kinds of anomaly, and their names in the report.
KINDS = {
    "long_lines": f"line of more than {LONGEST_LINE:,} characters, cut (one sentence per line?)",
    "invalid_lines": "line with bytes that are not UTF-8",
}


def sentences_of(text, on_invalid, anomalies):
    """Returns the sentences of a document.

    Args:
      text: bytes, one sentence per line.
      on_invalid: what to do with a line that is not UTF-8: "replace" replaces bad bytes by
        U+FFFD, which the tokenizer drops; "skip" leaves the line out; "error" raises.
      anomalies: a `collections.Counter` of `KINDS`; it is updated.

    Returns:
      List of non-empty str of at most `LONGEST_LINE` characters, without white space at their
      ends.

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
    """Yields lines as str; lines that are not UTF-8 are repaired or left out."""
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            anomalies["invalid_lines"] += 1
            if on_invalid == "replace":
                yield line.decode(errors="replace")
