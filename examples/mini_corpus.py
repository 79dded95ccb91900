"""Writes the training text of mini: modern prose, encyclopedia paragraphs and regular poems.

python examples/mini_corpus.py --data=data --output_file=out/mini/corpus.txt

The output has a sentence a line and a blank line between documents. --data holds
classical_modern/train.jsonl.gz (NiuTrans Classical-Modern, MIT: only the modern side),
cmrc2018/train.json (CMRC2018, CC BY-SA 4.0: only the paragraphs) and poetry/train.jsonl.gz
(chinese-poetry, MIT).
"""

import argparse
import itertools
import os
import re
import sys

try:
    from nezha_tf.data.corpus import write_documents
    from nezha_tf.data.rows import read_rows
    from nezha_tf.data.squad import read_questions
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

# A document of one poem would leave half of its example empty.
POEMS_IN_A_DOCUMENT = 10
# A sentence with its closing marks, or what is left at the end without one.
_SENTENCE = re.compile(r"[^。！？]*[。！？]+[”’」』》）]*|[^。！？]+")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="Folder of the data sets.")
    parser.add_argument("--output_file", required=True, help="Where the text is written.")
    flags = parser.parse_args()
    try:
        write_documents(flags.output_file, documents(flags.data))
    except (UserError, OSError) as error:
        sys.exit(f"mini_corpus.py: error: {error}")


def documents(data):
    """Yields lists of sentences: chapters, paragraphs, some poems."""
    pairs = read_rows(os.path.join(data, "classical_modern/train.jsonl.gz"), ("doc", "tgt"))
    for _, chapter in itertools.groupby(pairs, key=lambda row: row.values["doc"]):
        yield [row.values["tgt"] for row in chapter]
    paths = [os.path.join(data, "cmrc2018/train.json")]
    questions = read_questions(paths, with_impossible=False, needs_answers=False)
    for paragraph in dict.fromkeys(question.context for question in questions):
        yield sentences(paragraph)
    poems = read_rows(os.path.join(data, "poetry/train.jsonl.gz"), ("form", "title", "text"))
    while some := list(itertools.islice(poems, POEMS_IN_A_DOCUMENT)):
        yield [line for row in some for line in sentences(verses(**row.values))]


def verses(form, title, text):
    """Returns a poem with what examples/poetry.py asks for: its form and title."""
    return f"{form}《{title}》{text}"


def sentences(text):
    """Returns the sentences of a text without the white space around them."""
    found = (sentence.strip() for line in text.splitlines() for sentence in _SENTENCE.findall(line))
    return [sentence for sentence in found if sentence]


if __name__ == "__main__":
    main()
