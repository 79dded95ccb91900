"""Writes both sides of a parallel text, or one, as running text: a sentence a line.

python examples/classical_corpus.py --input_file=train.jsonl.gz --output_file=corpus.txt

The input has lines of {"doc": ..., "src": ..., "tgt": ...}, in the order of the books. A chapter is
a document in classical Chinese and then one in modern Chinese, with a blank line after each;
--sides=tgt writes the modern ones alone.
"""

import itertools
import sys

from absl import app, flags

try:
    from nezha_tf.data.corpus import write_documents
    from nezha_tf.data.rows import read_rows
    from nezha_tf.util import files
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

FLAGS = flags.FLAGS
flags.DEFINE_string("input_file", None, "JSON lines, may be packed with gzip.", required=True)
flags.DEFINE_string("output_file", None, "Where the text is written.", required=True)
SIDES = ("src", "tgt")
flags.DEFINE_multi_enum("sides", SIDES, SIDES, "The sides to write; repeat the flag for both.")


def documents(path, sides=SIDES):
    """Yields lists of sentences: of each chapter the classical ones, then the modern ones."""
    pairs = read_rows(path, ("doc", "src", "tgt"))
    for _, rows in itertools.groupby(pairs, key=lambda row: row.values["doc"]):
        chapter = [row.values for row in rows]
        for side in filter(sides.__contains__, SIDES):
            yield [pair[side] for pair in chapter]


def main(_):
    try:
        files.require_other(FLAGS.output_file, "output_file", [FLAGS.input_file])
        write_documents(FLAGS.output_file, documents(FLAGS.input_file, FLAGS.sides))
    except (UserError, OSError) as error:
        sys.exit(f"classical_corpus.py: error: {error}")


if __name__ == "__main__":
    app.run(main)
