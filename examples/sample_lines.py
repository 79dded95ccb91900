"""Takes lines of a text file at even distances, such as pairs from all books of a collection.

python examples/sample_lines.py --input_file=train.jsonl.gz --output_file=sample.jsonl --count=20000
"""

import sys

from absl import app, flags

try:
    from nezha_tf.data.corpus import read_lines
    from nezha_tf.util import files
    from nezha_tf.util.errors import UserError
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

FLAGS = flags.FLAGS
flags.DEFINE_string("input_file", None, "UTF-8 text, may be packed with gzip.", required=True)
flags.DEFINE_string("output_file", None, "Where the lines are written.", required=True)
flags.DEFINE_integer("count", None, "Number of lines to take.", 1, required=True)


def main(_):
    try:
        files.require_other(FLAGS.output_file, "output_file", [FLAGS.input_file])
        if FLAGS.output_file.endswith(".gz"):
            raise UserError(f"--output_file={FLAGS.output_file} is not packed; leave .gz out")
        lines = list(read_lines(FLAGS.input_file))
        if len(lines) < FLAGS.count:
            raise UserError(
                f"{FLAGS.input_file} has only {len(lines):,} lines, not {FLAGS.count:,}"
            )
        chosen = (lines[number * len(lines) // FLAGS.count] for number in range(FLAGS.count))
        files.write_text(FLAGS.output_file, "".join(chosen))
    except (UserError, OSError) as error:
        sys.exit(f"sample_lines.py: error: {error}")


if __name__ == "__main__":
    app.run(main)
