"""Makes data for question generation (passage and answer to question) from SQuAD's format."""

import json
import re

from nezha_tf import files
from nezha_tf.data.squad import read_questions

# A sentence with its punctuation, or the rest of a passage.
SENTENCE = re.compile(r"[^。！？；\n]*[。！？；\n]+|[^。！？；\n]+$")


def make_question_generation_data(*, input_file, output_file, context_chars):
    """Writes lines {"src", "tgt"}: the answer with the sentences around it, and the question.

    Args:
      input_file: a JSON file in SQuAD's format.
      output_file: the file of JSON lines to write.
      context_chars: most characters of the passage in a source.

    Returns:
      The number of lines.

    Raises:
      UserError: the input is bad; no incomplete file is left.
    """
    files.require_other(output_file, "output_file", [input_file])
    questions = read_questions([input_file])
    lines = []
    for question in questions:
        answer = question.answers[0]
        context = sentences_around(question.context, answer.start, len(answer.text), context_chars)
        # The answer comes first, because the end of a long source is cut off.
        pair = {"src": f"答案：{answer.text} 原文：{context}", "tgt": question.text}
        lines.append(json.dumps(pair, ensure_ascii=False) + "\n")
    files.write_text(output_file, "".join(lines))
    return len(lines)


def sentences_around(context, start, length, most):
    """Returns the sentences that contain a span of a passage, and as many around it as fit.

    A sentence is always added on the side with less text, so the span is about in the middle.

    Args:
      context: the passage.
      start, length: the span, in characters.
      most: most characters to return; if the span's own sentences are longer, they are cut
        evenly on both sides of it.
    """
    spans = [match.span() for match in SENTENCE.finditer(context)]
    inside = [n for n, (a, b) in enumerate(spans) if a < start + length and b > start]
    first, last = inside[0], inside[-1]
    begin, end = spans[first][0], spans[last][1]
    if end - begin > most:
        margin = max(0, most - length) // 2
        begin = max(begin, min(start - margin, end - most))
        return context[begin : begin + most]
    while True:
        sides = []
        if first > 0 and end - spans[first - 1][0] <= most:
            sides.append((start - begin, -1))
        if last + 1 < len(spans) and spans[last + 1][1] - begin <= most:
            sides.append((end - start - length, 1))
        if not sides:
            return context[begin:end].strip()
        if min(sides)[1] < 0:
            first -= 1
            begin = spans[first][0]
        else:
            last += 1
            end = spans[last][1]
