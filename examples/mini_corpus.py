"""Writes the two training texts of mini: books.txt and modern.txt.

python examples/mini_corpus.py --data=data --output_dir=out/mini

The outputs have a sentence a line and a blank line between documents.
- books.txt: classical_modern/train.jsonl.gz (NiuTrans Classical-Modern, MIT: only the modern side),
  cmrc2018/train.json (CMRC2018, CC BY-SA 4.0: only the paragraphs) and poetry/train.jsonl.gz
  (chinese-poetry, MIT).
- modern.txt: modern/train.txt.xz, prose of today (docs/en/mini.md names its sources and licences),
  without the documents that share text with a development set on which mini is measured: those of
  EVALUATION that lie in the folder. A stretch of 39 shared characters is always found, one of 20 to
  38 where it covers a whole block of 20 of the evaluation text; shorter texts are not looked for.
"""

import argparse
import glob
import itertools
import json
import os
import re
import sys

try:
    from nezha_tf.data.corpus import read_documents, read_lines, write_documents
    from nezha_tf.data.rows import read_rows
    from nezha_tf.data.squad import read_questions
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

# A document of one poem would leave half of its example empty.
POEMS_IN_A_DOCUMENT = 10
EVALUATION = (
    "c3/c3-?-dev.json",
    "cmrc2018/dev.json",
    "fewclue/*/dev*.json",
    "ocnli/dev.jsonl",
    "people_daily_ner/dev.txt",
    "sentiment/dev.tsv",
)
STRETCH = 20
# A sentence with its closing marks, or what is left at the end without one.
_SENTENCE = re.compile(r"[^。！？]*[。！？]+[”’」』》）]*|[^。！？]+")
_BLANKS = re.compile(r"\s*")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="Folder of the data sets.")
    parser.add_argument("--output_dir", required=True, help="Where the two texts are written.")
    flags = parser.parse_args()
    try:
        for name, documents in (("books", books), ("modern", modern)):
            write_documents(os.path.join(flags.output_dir, f"{name}.txt"), documents(flags.data))
    except (UserError, OSError) as error:
        sys.exit(f"mini_corpus.py: error: {error}")


def books(data):
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


def modern(data):
    """Yields lists of sentences: the documents that share no stretch with an evaluation text."""
    path = os.path.join(data, "modern/train.txt.xz")
    kept_out = stretches(evaluation_texts(data))
    for document in read_documents(path):
        if not shares(document, kept_out):
            yield document


def evaluation_texts(data):
    """Yields the texts of the data sets of EVALUATION that are in the folder."""
    for pattern in EVALUATION:
        for path in sorted(glob.glob(os.path.join(glob.escape(str(data)), pattern))):
            lines = list(read_lines(path))
            if path.endswith(".tsv"):
                yield from lines
            elif path.endswith(".txt"):
                # A character and its tag a line, a blank line between texts.
                for blank, text in itertools.groupby(lines, key=str.isspace):
                    yield "" if blank else "".join(line.split()[0] for line in text)
            else:
                yield from strings(json_values(path, "".join(lines)))


def json_values(path, text):
    """Returns the JSON values of a file: of one value, or of one a line."""
    values, place, decoder = [], 0, json.JSONDecoder()
    try:
        while (place := _BLANKS.match(text, place).end()) < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON: {error}") from error
    return values


def strings(value):
    """Yields the strings in a JSON value, without the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings(list(value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(strings, value))


def stretches(texts):
    """Returns the set of every STRETCH-th stretch of each text, white space left out."""
    squeezed = ("".join(text.split()) for text in texts)
    return {
        text[start : start + STRETCH]
        for text in squeezed
        for start in range(0, len(text) - STRETCH + 1, STRETCH)
    }


def shares(document, kept_out):
    """Whether a document has one of the stretches at any place, white space left out."""
    text = "".join("".join(document).split())
    return any(text[i : i + STRETCH] in kept_out for i in range(len(text) - STRETCH + 1))


if __name__ == "__main__":
    main()
