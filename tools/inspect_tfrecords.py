"""Shows examples of TFRecords as text, or checks the files.

python tools/inspect_tfrecords.py --input_file='out/train*.tfrecord'
python tools/inspect_tfrecords.py --input_file='out/*.tfrecord' --check
"""

import sys

try:
    from nezha_tf import cli
except ImportError as error:
    sys.exit(f"{error}; install the project first: pip install -e .")

from absl import flags

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "TFRecord files: names or globs, comma-separated.")
flags.DEFINE_string("vocab_file", "", "The vocabulary; the one that the manifest names, if none.")
flags.DEFINE_integer("first_record", 1, "First record of a file that is shown.", lower_bound=1)
flags.DEFINE_integer("num_records", 5, "Records that are shown.", lower_bound=1)
flags.DEFINE_bool(
    "check",
    False,
    "Instead of showing examples, check every record against schema and manifest; the status is 1 "
    "if there is a fault.",
)


def main():
    from nezha_tf.errors import require_flag
    from nezha_tf.pretraining_data import inspection

    input_file = require_flag(FLAGS.input_file, "input_file")
    if not FLAGS.check:
        inspection.show(input_file, FLAGS.vocab_file, FLAGS.first_record, FLAGS.num_records)
    elif inspection.check(input_file, FLAGS.vocab_file):
        sys.exit(1)


if __name__ == "__main__":
    cli.run(main)
