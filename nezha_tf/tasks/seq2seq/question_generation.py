"""Makes data for question generation (passage and answer to question) from SQuAD's format."""

import dataclasses
import json
import re

from nezha_tf.data.squad import read_questions
from nezha_tf.util import console, files
from nezha_tf.util.errors import require_flag
from nezha_tf.util.settings import flag

# A sentence with its punctuation, or the rest of a passage.
SENTENCE = re.compile(r"[^。！？；\n]*[。！？；\n]+|[^。！？；\n]+$")


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionGenerationSettings:
    """The settings of tools/make_question_generation_data.py."""

    input_file: str | None = flag(
        None, "JSON file in SQuAD's form: questions with their answers and passages."
    )
    output_file: str | None = flag(None, 'JSON lines to write: {"src": ..., "tgt": ...}.')
    context_chars: int = flag(90, "Largest number of characters of the passage in a source.", 1)


def make_question_generation_data(settings):
    """Writes lines {"src", "tgt"}: the answer with the sentences around it, and the question.

    Returns the line to print. Raises a `UserError` if a flag is missing, or the input is bad; no
    incomplete file is left.
    """
    input_file = require_flag(settings.input_file, "input_file")
    output_file = require_flag(settings.output_file, "output_file")
    files.require_other(output_file, "output_file", [input_file])
    lines = []
    for question in read_questions([input_file]):
        answer = question.answers[0]
        span = answer.start, len(answer.text)
        context = sentences_around(question.context, *span, settings.context_chars)
        # The answer comes first, because the end of a long source is cut off.
        pair = {"src": f"答案：{answer.text} 原文：{context}", "tgt": question.text}
        lines.append(json.dumps(pair, ensure_ascii=False) + "\n")
    files.write_text(output_file, "".join(lines))
    return f"{console.plural(len(lines), 'question')} in {output_file}"


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
        else:
            last += 1
        begin, end = spans[first][0], spans[last][1]
