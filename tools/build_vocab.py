"""Makes a WordPiece vocabulary out of running text.

python tools/build_vocab.py --input_file='corpus/*.txt.gz' --output_file=vocab.txt
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text files: names or globs, comma-separated; .gz too.")
flags.DEFINE_string("output_file", None, "The vocabulary to write.")
flags.DEFINE_integer("vocab_size", 21128, "Most pieces.", lower_bound=1)
flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents.")
flags.DEFINE_integer(
    "min_character_count", 2, "Leave out Chinese characters seen less often.", lower_bound=1
)
flags.DEFINE_bool("common_characters", False, "Also take the levels 1 of GB 2312 and Big5.")
flags.DEFINE_string("include_file", None, "Pieces to take in any case, one a line.")


def main():
    from nezha_tf import console, files
    from nezha_tf.data.corpus import read_documents
    from nezha_tf.errors import require_flag
    from nezha_tf.text.vocabulary_builder import build_vocabulary

    output_file = require_flag(FLAGS.output_file, "output_file")
    paths = files.expand(require_flag(FLAGS.input_file, "input_file"), "input_file")
    includes = [FLAGS.include_file] if FLAGS.include_file else []
    files.require_other(output_file, "output_file", [*paths, *includes])
    include = []
    if FLAGS.include_file:
        include = [line for document in read_documents(FLAGS.include_file) for line in document]
    pieces, coverage = build_vocabulary(
        (line for path in paths for document in read_documents(path) for line in document),
        FLAGS.vocab_size,
        do_lower_case=FLAGS.do_lower_case,
        min_character_count=FLAGS.min_character_count,
        common_characters=FLAGS.common_characters,
        include=include,
    )
    files.write_text(output_file, "".join(f"{piece}\n" for piece in pieces))
    rows = [("pieces", f"{len(pieces):,}"), ("Chinese characters covered", f"{coverage:.3%}")]
    print(console.table(output_file, rows))


if __name__ == "__main__":
    cli.run(main)
