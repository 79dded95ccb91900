"""Reading comprehension data in the form of SQuAD 1.1, as CMRC2018 has it too."""

import json
from typing import NamedTuple

from nezha_tf.errors import UserError


class Question(NamedTuple):
    """A question on a passage, with its first answer.

    Attributes:
      id: names it.
      context: the passage.
      text: the question.
      answer: a stretch of the passage.
      answer_start: its first character in the passage.
    """

    id: str
    context: str
    text: str
    answer: str
    answer_start: int


def read_questions(path):
    """Returns the questions of a file as a list of `Question`.

    An answer that does not stand where the file says is looked for in the passage (CMRC2018 has
    some).

    Raises:
      UserError: the file is missing or is no such data, or an answer is nowhere in its passage.
    """
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)["data"]
        return [
            _question(path, paragraph["context"], entry)
            for article in data
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        ]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON in UTF-8: {error}") from error
    except (KeyError, IndexError, TypeError) as error:
        raise UserError(f"{path} has not SQuAD's form ({error!r})") from error


def _question(path, context, entry):
    answer = entry["answers"][0]
    text, start = answer["text"], answer["answer_start"]
    if not context.startswith(text, start):
        start = context.find(text)
    if start < 0 or not text:
        raise UserError(f"{path}: the answer {text!r} to {entry['id']} is not in its passage")
    return Question(entry["id"], context, entry["question"], text, start)
