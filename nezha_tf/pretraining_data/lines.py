"""Sentences out of the bytes of a document, and what is odd about them."""

# A longer line is cut: word segmentation takes memory by the length of a line.
LONGEST_LINE = 10_000

# Kinds of anomaly that are counted here, and how one of each is told.
KINDS = {
    "long_lines": f"line of more than {LONGEST_LINE:,} characters, cut (one sentence a line?)",
    "invalid_lines": "line with bytes that are not UTF-8",
}


def sentences_of(text, on_invalid, anomalies):
    """Returns the sentences of a document.

    Args:
      text: bytes, one sentence a line.
      on_invalid: what is done with a line that is not UTF-8: "replace" puts U+FFFD, which the
        tokenizer drops, in the place of bad bytes; "skip" leaves the line out; "error" raises.
      anomalies: a `collections.Counter` of `KINDS`, which is added to.

    Returns:
      List of str without outer white space, none of them empty, of `LONGEST_LINE` characters
      at most.

    Raises:
      UnicodeDecodeError: with "error", bytes that are not UTF-8.
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
            sentences.extend(part for part in parts if part)
        elif sentence:
            sentences.append(sentence)
    return sentences


def _decodable(lines, on_invalid, anomalies):
    """Yields lines as str; those that are not UTF-8 mended or left out."""
    for line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError:
            anomalies["invalid_lines"] += 1
            if on_invalid == "replace":
                yield line.decode(errors="replace")
